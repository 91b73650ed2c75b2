//! The port transmit machine (IEEE 802.1D-2004, 17.26): content, time and rate of BPDUs.

use super::super::bpdu::{Bpdu, ConfigBpdu, RapidFlags};
use super::super::port::{PortRole, TreePort};
use super::super::{SpanningTree, TreeAction};

pub(super) fn step(tree: &mut SpanningTree, index: usize) -> bool {
    let hello_time = u32::from(tree.settings.hello_time);
    let hold_count = tree.settings.transmit_hold_count;
    let port = &mut tree.ports[index];
    if !port.selected || port.update || !port.enabled {
        return false;
    }
    if port.hello_when == 0 {
        let is_periodic = match port.role {
            PortRole::Designated => true,
            PortRole::Root => port.tc_while != 0,
            PortRole::Disabled | PortRole::Alternate | PortRole::Backup => false,
        };
        port.new_info |= is_periodic;
        port.hello_when = hello_time;
        return true;
    }
    if !port.new_info || port.transmit_count >= hold_count {
        return false;
    }
    let bpdu = match (port.send_rstp, port.role) {
        (true, _) => Bpdu::Config(config_bpdu(port)),
        (false, PortRole::Designated) => Bpdu::Config(ConfigBpdu {
            rapid: None,
            ..config_bpdu(port)
        }),
        (false, PortRole::Root) => Bpdu::TopologyChange,
        // STP ports of these roles send no BPDU.
        (false, PortRole::Disabled | PortRole::Alternate | PortRole::Backup) => return false,
    };
    port.new_info = false;
    port.transmit_count += 1;
    port.tc_ack = false;
    port.hello_when = hello_time;
    port.counts.sent += 1;
    let number = port.number;
    tree.actions.push(TreeAction::Send(number, bpdu.bytes()));
    true
}

fn config_bpdu(port: &TreePort) -> ConfigBpdu {
    ConfigBpdu {
        priority: port.designated,
        times: port.designated_times,
        change: port.tc_while != 0,
        acknowledged: port.tc_ack,
        rapid: Some(RapidFlags {
            role: Some(port.role),
            proposal: port.proposing,
            agreement: port.agree,
            learning: port.learning,
            forwarding: port.forwarding,
        }),
    }
}
