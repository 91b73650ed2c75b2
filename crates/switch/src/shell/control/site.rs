//! A bridge and all that belongs to it outside its own head: open ports, tasks,
//! sockets. Dropping it closes them.

use std::collections::BTreeMap;

use base::PortNo;
use openflow::Versions;
use packet::MacAddr;
use ports::Port;

use crate::config::{Auxiliaries, Listen, Target};
use crate::core::bridge::Bridge;
use crate::reconcile::NumberedPort;
use crate::shell::peers::Task;
use crate::shell::rundir::SocketFile;

/// A port that is wanted.
pub(super) struct PortSite {
    /// What was asked for.
    pub(super) wanted: NumberedPort,
    /// Its Ethernet address, if the switch is to give it one.
    pub(super) address: Option<MacAddr>,
    /// The open device; none while the interface is missing.
    pub(super) device: Option<Box<dyn Port>>,
    /// The system's number for the interface; none while it is missing, or is in
    /// another network namespace, where its news do not reach us.
    pub(super) index: Option<u32>,
}

/// A place where peers are waited for.
pub(super) struct ListenSite {
    /// The task that waits. It ends before the file goes.
    pub(super) _task: Task,
    /// The socket's file, if it has one.
    pub(super) _file: Option<SocketFile>,
}

/// A bridge with all it has.
pub(super) struct Site {
    /// The bridge.
    pub(super) bridge: Bridge,
    /// The versions it speaks.
    pub(super) protocols: Versions,
    /// How many auxiliary connections it has to each controller.
    pub(super) auxiliary: Auxiliaries,
    /// Its ports.
    pub(super) ports: BTreeMap<PortNo, PortSite>,
    /// The controllers it connects to.
    pub(super) controllers: BTreeMap<Target, Task>,
    /// Where it listens.
    pub(super) listeners: BTreeMap<Listen, ListenSite>,
    /// Its management socket, for OpenFlow.
    pub(super) _management: ListenSite,
    /// Its control socket, for unixctl.
    pub(super) _control: ListenSite,
}
