//! The port information machine (IEEE 802.1D-2004, 17.27): the root information of a port, its
//! source and its lifetime.

use super::super::SpanningTree;
use super::super::bpdu::ConfigBpdu;
use super::super::port::{PortRole, Source, TreePort};
use super::is_rapid;

/// Rank of a received BPDU relative to the port's information (`rcvInfo`, 17.21.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BpduRank {
    SuperiorDesignated,
    RepeatedDesignated,
    InferiorDesignated,
    InferiorRootAlternate,
    Other,
}

pub(super) fn step(tree: &mut SpanningTree, index: usize) -> bool {
    let rapid = is_rapid(tree);
    let port = &mut tree.ports[index];
    if !port.enabled {
        port.message = None;
        let was_enabled = port.source != Source::Disabled;
        if was_enabled {
            port.disable();
        }
        return was_enabled;
    }
    if port.source == Source::Disabled {
        age(port);
        return true;
    }
    if port.selected && port.update {
        update_info(port);
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
    let Some(config) = port.message.take() else {
        return false;
    };
    receive(port, &config, rapid);
    true
}

/// `AGED`.
const fn age(port: &mut TreePort) {
    port.source = Source::Aged;
    port.reselect();
}

/// `UPDATE`: the port takes over the information of its own bridge.
fn update_info(port: &mut TreePort) {
    port.proposing = false;
    port.proposed = false;
    let no_worse = port.source == Source::Mine && port.designated <= port.port_priority;
    port.agreed &= no_worse;
    port.synced &= port.agreed;
    port.port_priority = port.designated;
    port.port_times = port.designated_times;
    port.update = false;
    port.source = Source::Mine;
    port.new_info = true;
}

fn rank(port: &TreePort, config: &ConfigBpdu) -> BpduRank {
    let role = config
        .rapid
        .map_or(Some(PortRole::Designated), |rapid| rapid.role);
    match role {
        Some(PortRole::Designated) => {
            let same = config.priority == port.port_priority;
            let same_times = config.times == port.port_times;
            if config.priority.supersedes(&port.port_priority) || (same && !same_times) {
                BpduRank::SuperiorDesignated
            } else if same {
                BpduRank::RepeatedDesignated
            } else {
                BpduRank::InferiorDesignated
            }
        }
        Some(PortRole::Root | PortRole::Alternate | PortRole::Backup)
            if config.priority >= port.port_priority =>
        {
            BpduRank::InferiorRootAlternate
        }
        _ => BpduRank::Other,
    }
}

fn receive(port: &mut TreePort, config: &ConfigBpdu, rapid: bool) {
    match rank(port, config) {
        BpduRank::SuperiorDesignated => {
            port.agreed = false;
            port.proposing = false;
            record_proposal(port, config);
            set_change_flags(port, config);
            let no_worse = port.source == Source::Received && config.priority <= port.port_priority;
            port.agree &= no_worse;
            record_agreement(port, config, rapid);
            port.synced &= port.agreed;
            port.port_priority = config.priority;
            port.port_times = config.times;
            refresh_lifetime(port);
            port.source = Source::Received;
            port.reselect();
        }
        BpduRank::RepeatedDesignated => {
            record_proposal(port, config);
            set_change_flags(port, config);
            record_agreement(port, config, rapid);
            refresh_lifetime(port);
        }
        BpduRank::InferiorDesignated => {
            if config.rapid.is_some_and(|flags| flags.learning) {
                // As in 802.1Q (17.21.10 there); the text of 802.1D would set `agreed`.
                port.disputed = true;
                port.agreed = false;
            }
        }
        BpduRank::InferiorRootAlternate => {
            record_agreement(port, config, rapid);
            set_change_flags(port, config);
        }
        BpduRank::Other => {}
    }
}

fn record_proposal(port: &mut TreePort, config: &ConfigBpdu) {
    let proposes = |flags: super::super::bpdu::RapidFlags| {
        flags.role == Some(PortRole::Designated) && flags.proposal
    };
    port.proposed |= config.rapid.is_some_and(proposes);
}

fn record_agreement(port: &mut TreePort, config: &ConfigBpdu, rapid: bool) {
    let agrees = config.rapid.is_some_and(|flags| flags.agreement);
    port.agreed = rapid && port.settings.point_to_point && agrees;
    port.proposing &= !port.agreed;
}

const fn set_change_flags(port: &mut TreePort, config: &ConfigBpdu) {
    port.received_tc |= config.change;
    port.received_tc_ack |= config.acknowledged;
}

/// Sets the lifetime of received information to three hello times, or to zero if the information
/// exceeds its maximum age (`updtRcvdInfoWhile`, 17.21.23).
fn refresh_lifetime(port: &mut TreePort) {
    let times = &port.port_times;
    let reaches = times.message_age < times.max_age;
    port.received_info_while = match reaches {
        true => 3 * u32::from(times.hello_time),
        false => 0,
    };
}
