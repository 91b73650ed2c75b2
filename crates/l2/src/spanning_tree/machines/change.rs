//! The topology change machine (IEEE 802.1D-2004, 17.31): when a port starts to forward, all
//! bridges flush the learned addresses of the affected ports.

use super::super::port::{PortRole, TopologyChangeState};
use super::super::{SpanningTree, TreeAction, TreeVersion};

pub(super) fn step(tree: &mut SpanningTree, index: usize) -> bool {
    let port = &mut tree.ports[index];
    let in_tree = matches!(port.role, PortRole::Root | PortRole::Designated);
    let has_flags =
        port.received_tc || port.received_tcn || port.received_tc_ack || port.tc_propagate;
    match port.change {
        TopologyChangeState::Inactive if port.learn => port.change = TopologyChangeState::Learning,
        TopologyChangeState::Inactive => return clear_flags(tree, index),
        TopologyChangeState::Learning if in_tree && port.forward && !port.edge => {
            begin_change(tree, index);
            propagate(tree, index);
            let port = &mut tree.ports[index];
            port.new_info = true;
            port.change = TopologyChangeState::Active;
        }
        TopologyChangeState::Learning if !(in_tree || port.learn || port.learning || has_flags) => {
            port.tc_while = 0;
            port.tc_ack = false;
            port.change = TopologyChangeState::Inactive;
            let number = port.number;
            tree.actions.push(TreeAction::Flush(number));
        }
        TopologyChangeState::Learning => return clear_flags(tree, index),
        TopologyChangeState::Active if !in_tree || port.edge => {
            port.change = TopologyChangeState::Learning
        }
        TopologyChangeState::Active if port.received_tcn => {
            begin_change(tree, index);
            note_change(tree, index);
        }
        TopologyChangeState::Active if port.received_tc => note_change(tree, index),
        TopologyChangeState::Active if port.tc_propagate => {
            port.tc_propagate = false;
            let number = port.number;
            begin_change(tree, index);
            tree.actions.push(TreeAction::Flush(number));
        }
        TopologyChangeState::Active if port.received_tc_ack => {
            port.tc_while = 0;
            port.received_tc_ack = false;
        }
        TopologyChangeState::Active => return false,
    }
    true
}

fn clear_flags(tree: &mut SpanningTree, index: usize) -> bool {
    let port = &mut tree.ports[index];
    let has_flags =
        port.received_tc || port.received_tcn || port.received_tc_ack || port.tc_propagate;
    port.received_tc = false;
    port.received_tcn = false;
    port.received_tc_ack = false;
    port.tc_propagate = false;
    has_flags
}

/// `NOTIFIED_TC`.
fn note_change(tree: &mut SpanningTree, index: usize) {
    let port = &mut tree.ports[index];
    port.received_tcn = false;
    port.received_tc = false;
    port.tc_ack |= port.role == PortRole::Designated;
    propagate(tree, index);
}

/// `setTcPropTree` (17.21.18).
fn propagate(tree: &mut SpanningTree, index: usize) {
    for (other, port) in tree.ports.iter_mut().enumerate() {
        port.tc_propagate |= other != index;
    }
}

/// `newTcWhile` (17.21.7).
fn begin_change(tree: &mut SpanningTree, index: usize) {
    let times = tree.root_times;
    let port = &mut tree.ports[index];
    if port.tc_while == 0 {
        if tree.settings.version == TreeVersion::Stp {
            tree.actions.push(TreeAction::FlushAll);
        }
        port.tc_while = match port.send_rstp {
            true => u32::from(times.hello_time) + 1,
            false => u32::from(times.max_age) + u32::from(times.forward_delay),
        };
        port.new_info |= port.send_rstp;
    }
}
