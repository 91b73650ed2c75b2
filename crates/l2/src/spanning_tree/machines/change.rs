//! The topology change machine (IEEE 802.1D-2004, 17.31): when a port starts to forward, all
//! bridges flush the learned addresses of the affected ports.

use super::super::port::{Change, PortRole};
use super::super::{SpanningTree, TreeAction};

pub(super) fn step(tree: &mut SpanningTree, place: usize) -> bool {
    let port = &mut tree.ports[place];
    let in_tree = matches!(port.role, PortRole::Root | PortRole::Designated);
    let heard = port.received_tc || port.received_tcn || port.received_tc_ack || port.tc_propagate;
    match port.change {
        Change::Inactive if port.learn => port.change = Change::Learning,
        Change::Inactive => return forget_flags(tree, place),
        Change::Learning if in_tree && port.forward && !port.edge => {
            begin_change(tree, place);
            propagate(tree, place);
            let port = &mut tree.ports[place];
            port.new_info = true;
            port.change = Change::Active;
        }
        Change::Learning if !(in_tree || port.learn || port.learning || heard) => {
            port.tc_while = 0;
            port.tc_ack = false;
            port.change = Change::Inactive;
            let number = port.number;
            tree.actions.push(TreeAction::Flush(number));
        }
        Change::Learning => return forget_flags(tree, place),
        Change::Active if !in_tree || port.edge => port.change = Change::Learning,
        Change::Active if port.received_tcn => {
            begin_change(tree, place);
            note_change(tree, place);
        }
        Change::Active if port.received_tc => note_change(tree, place),
        Change::Active if port.tc_propagate => {
            port.tc_propagate = false;
            let number = port.number;
            begin_change(tree, place);
            tree.actions.push(TreeAction::Flush(number));
        }
        Change::Active if port.received_tc_ack => {
            port.tc_while = 0;
            port.received_tc_ack = false;
        }
        Change::Active => return false,
    }
    true
}

fn forget_flags(tree: &mut SpanningTree, place: usize) -> bool {
    let port = &mut tree.ports[place];
    let heard = port.received_tc || port.received_tcn || port.received_tc_ack || port.tc_propagate;
    port.received_tc = false;
    port.received_tcn = false;
    port.received_tc_ack = false;
    port.tc_propagate = false;
    heard
}

/// `NOTIFIED_TC`.
fn note_change(tree: &mut SpanningTree, place: usize) {
    let port = &mut tree.ports[place];
    port.received_tcn = false;
    port.received_tc = false;
    port.tc_ack |= port.role == PortRole::Designated;
    propagate(tree, place);
}

/// `setTcPropTree` (17.21.18).
fn propagate(tree: &mut SpanningTree, place: usize) {
    for (other, port) in tree.ports.iter_mut().enumerate() {
        port.tc_propagate |= other != place;
    }
}

/// `newTcWhile` (17.21.7).
fn begin_change(tree: &mut SpanningTree, place: usize) {
    let times = tree.root_times;
    let port = &mut tree.ports[place];
    if port.tc_while == 0 {
        port.tc_while = match port.sends_rapid {
            true => u32::from(times.hello_time) + 1,
            false => u32::from(times.max_age) + u32::from(times.forward_delay),
        };
        port.new_info |= port.sends_rapid;
    }
}
