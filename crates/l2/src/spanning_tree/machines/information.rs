//! The port information machine (IEEE 802.1D-2004, 17.27): the root information of a port, its
//! source and its lifetime.

use super::super::SpanningTree;
use super::super::bpdu::Said;
use super::super::port::{PortRole, Source, TreePort};
use super::is_rapid;

/// Rank of a received BPDU relative to the port's information (`rcvInfo`, 17.21.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    SuperiorDesignated,
    RepeatedDesignated,
    InferiorDesignated,
    InferiorRootAlternate,
    Other,
}

pub(super) fn step(tree: &mut SpanningTree, place: usize) -> bool {
    let rapid = is_rapid(tree);
    let port = &mut tree.ports[place];
    if !port.enabled {
        port.message = None;
        let went = port.source != Source::Disabled;
        if went {
            port.disable();
        }
        return went;
    }
    if port.source == Source::Disabled {
        age(port);
        return true;
    }
    if port.selected && port.update {
        take_mine(port);
        return true;
    }
    if port.source == Source::Received
        && port.received_info_while == 0
        && !port.update
        && port.message.is_none()
    {
        age(port);
        return true;
    }
    if port.update || port.source == Source::Aged {
        return false;
    }
    let Some(said) = port.message.take() else {
        return false;
    };
    receive(port, &said, rapid);
    true
}

/// `AGED`.
const fn age(port: &mut TreePort) {
    port.source = Source::Aged;
    port.reselect();
}

/// `UPDATE`: the port takes over the information of its own bridge.
fn take_mine(port: &mut TreePort) {
    port.proposing = false;
    port.proposed = false;
    let no_worse = port.source == Source::Mine && port.designated <= port.known;
    port.agreed &= no_worse;
    port.synced &= port.agreed;
    port.known = port.designated;
    port.known_times = port.designated_times;
    port.update = false;
    port.source = Source::Mine;
    port.new_info = true;
}

fn worth(port: &TreePort, said: &Said) -> Worth {
    let role = said
        .rapid
        .map_or(Some(PortRole::Designated), |rapid| rapid.role);
    match role {
        Some(PortRole::Designated) => {
            let same = said.priority == port.known;
            let same_times = said.times == port.known_times;
            if said.priority.supersedes(&port.known) || (same && !same_times) {
                Worth::SuperiorDesignated
            } else if same {
                Worth::RepeatedDesignated
            } else {
                Worth::InferiorDesignated
            }
        }
        Some(PortRole::Root | PortRole::Alternate | PortRole::Backup)
            if said.priority >= port.known =>
        {
            Worth::InferiorRootAlternate
        }
        _ => Worth::Other,
    }
}

fn receive(port: &mut TreePort, said: &Said, rapid: bool) {
    match worth(port, said) {
        Worth::SuperiorDesignated => {
            port.agreed = false;
            port.proposing = false;
            record_proposal(port, said);
            set_change_flags(port, said);
            let no_worse = port.source == Source::Received && said.priority <= port.known;
            port.agree &= no_worse;
            record_agreement(port, said, rapid);
            port.synced &= port.agreed;
            port.known = said.priority;
            port.known_times = said.times;
            live_on(port);
            port.source = Source::Received;
            port.reselect();
        }
        Worth::RepeatedDesignated => {
            record_proposal(port, said);
            set_change_flags(port, said);
            record_agreement(port, said, rapid);
            live_on(port);
        }
        Worth::InferiorDesignated => {
            if said.rapid.is_some_and(|flags| flags.learning) {
                // As in 802.1Q (17.21.10 there); the text of 802.1D would set `agreed`.
                port.disputed = true;
                port.agreed = false;
            }
        }
        Worth::InferiorRootAlternate => {
            record_agreement(port, said, rapid);
            set_change_flags(port, said);
        }
        Worth::Other => {}
    }
}

fn record_proposal(port: &mut TreePort, said: &Said) {
    let proposes = |flags: super::super::bpdu::Rapid| {
        flags.role == Some(PortRole::Designated) && flags.proposal
    };
    port.proposed |= said.rapid.is_some_and(proposes);
}

fn record_agreement(port: &mut TreePort, said: &Said, rapid: bool) {
    let agrees = said.rapid.is_some_and(|flags| flags.agreement);
    port.agreed = rapid && port.settings.point_to_point && agrees;
    port.proposing &= !port.agreed;
}

const fn set_change_flags(port: &mut TreePort, said: &Said) {
    port.received_tc |= said.change;
    port.received_tc_ack |= said.acknowledged;
}

/// Sets the lifetime of received information to three hello times, or to zero if the information
/// exceeds its maximum age (`updtRcvdInfoWhile`, 17.21.23).
fn live_on(port: &mut TreePort) {
    let times = &port.known_times;
    let reaches = times.message_age < times.max_age;
    port.received_info_while = match reaches {
        true => 3 * u32::from(times.hello_time),
        false => 0,
    };
}
