//! Test setups for network devices: namespaces, links between them, and devices under test as
//! processes, started as a user starts them.
//!
//! Everything is anonymous: namespaces have no names, and children end with the thread that started
//! them. Nothing remains after the process, however it ends.
//!
//! ```no_run
//! use testbed::{Clock, Namespace, Program, Spawner};
//! # fn main() -> Result<(), testbed::Failure> {
//! let (left, right) = (Namespace::new()?, Namespace::new()?);
//! left.join("eth0", &right, "eth0")?;
//! left.set_up("eth0")?;
//! right.set_up("eth0")?;
//! let mut ping = Spawner::new()?.start(Program::new("ip").args(["link"]).inside(&left))?;
//! assert!(ping.wait(std::time::Duration::from_secs(5))?.success());
//! # Ok(()) }
//! ```
//!
//! Traffic and results are the caller's. The switch is only known as a program.

mod bench;
mod clock;
mod control_stream;
mod device;
mod failure;
mod forwarder;
mod impairment;
mod interface;
mod interrupt;
mod link;
mod machine;
mod namespace;
mod nic;
mod open_vswitch;
mod process;
mod raw;
mod realtime;
mod requirements;
mod sockets;
mod stamped;
mod topology;
mod usage;
mod vlan;
mod xdp_sender;

pub use bench::{Bench, Host, StopTimes};
pub use clock::{Clock, Drift, MOVED_NS_MAX, Relation};
pub use control_stream::{Arrival, Chunk, ControlStream, Readiness, Stamp, enable_timestamps};
pub use device::{
    DescriptionFile, Device, DeviceKind, DeviceOptions, External, FailMode, Mode, Settings, Setup,
    StopSignal, UnknownDevice, near,
};
pub use failure::Failure;
pub use impairment::{Chance, FaultCounts, Faults, Impairment, Impairments};
pub use interface::{DeviceOffload, InterfaceCounters};
pub use interrupt::{INTERRUPTED, Interrupt};
pub use machine::{CoreTimes, Machine, backlog_drops, core_pressure, core_times};
pub use namespace::Namespace;
pub use nic::{BadNicName, NicName, NicRecovery, NicState};
pub use open_vswitch::{DpdkCores, OpenVswitch, Site, huge_pages_are_free};
pub use process::{Process, Program, Spawner, pin_current_thread};
pub use raw::RawSocket;
pub use requirements::{Missing, Requirement, check};
pub use stamped::{FrameReceiver, FrameSender};
pub use topology::{
    BRIDGES_MAX, BadTopology, BridgePlan, HOSTS_MAX, HostAttachment, MTU_ETHERNET, PortKind,
    Topology,
};
pub use usage::{
    RunTimes, Switches, Usage, process_start, proportional_bytes, run_times, switches, usage,
};
pub use xdp_sender::XdpSender;
