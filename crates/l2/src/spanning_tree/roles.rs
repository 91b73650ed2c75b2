//! The port role selection machine (IEEE 802.1D-2004, 17.21.25 and 17.28). The root is the bridge
//! with the lowest known identifier; the port with the best path to it is the root port.

use super::SpanningTree;
use super::port::{PortRole, Source};
use super::vector::{PriorityVector, TreePortId, TreeTimes};

/// Selects the roles of all ports if a port requested it. Returns whether it did.
pub(super) fn select(tree: &mut SpanningTree) -> bool {
    if !tree.ports.iter().any(|port| port.reselect) {
        return false;
    }
    // The information machine processes a new link before roles are selected again.
    for port in &mut tree.ports {
        port.reselect = false;
    }
    find_root(tree);
    for index in 0..tree.ports.len() {
        select_role(tree, index);
    }
    for port in &mut tree.ports {
        port.selected = true;
    }
    true
}

/// Selects the best vector among all received ones and the bridge's own. A port with root guard
/// announces no root (`restrictedRole`): with superior information it becomes an alternate port.
fn find_root(tree: &mut SpanningTree) {
    let own = tree.settings.id;
    let received = tree.ports.iter().filter(|port| {
        port.source == Source::Received
            && port.port_priority.bridge.address() != own.address()
            && !port.settings.guards.root
    });
    let paths = received.map(|port| {
        let cost = port
            .port_priority
            .cost
            .saturating_add(port.settings.path_cost);
        let path = PriorityVector {
            cost,
            ..port.port_priority
        };
        (path, port.settings.id, port)
    });
    let best = paths.min_by_key(|(path, id, _)| (*path, *id));
    let own_vector = PriorityVector::of_bridge(own);
    match best {
        Some((path, _, port)) if path < own_vector => {
            tree.root = path;
            tree.root_port = Some(port.number);
            tree.root_times = TreeTimes {
                message_age: port.port_times.message_age.saturating_add(1),
                ..port.port_times
            };
        }
        _ => {
            tree.root = own_vector;
            tree.root_port = None;
            tree.root_times = tree.settings.times();
        }
    }
}

fn select_role(tree: &mut SpanningTree, index: usize) {
    let own = tree.settings.id;
    let (root, root_times) = (tree.root, tree.root_times);
    let hello_time = tree.settings.hello_time;
    let is_root_port = tree.root_port == Some(tree.ports[index].number);
    let port = &mut tree.ports[index];
    port.designated = PriorityVector {
        root: root.root,
        cost: root.cost,
        bridge: own,
        port: port.settings.id,
    };
    port.designated_times = TreeTimes {
        hello_time,
        ..root_times
    };
    port.selected_role = match port.source {
        Source::Disabled => PortRole::Disabled,
        Source::Aged => {
            port.update = true;
            PortRole::Designated
        }
        Source::Mine => {
            let news =
                port.port_priority != port.designated || port.port_times != port.designated_times;
            port.update |= news;
            PortRole::Designated
        }
        Source::Received if is_root_port => {
            port.update = false;
            PortRole::Root
        }
        Source::Received if port.designated < port.port_priority => {
            port.update = true;
            PortRole::Designated
        }
        Source::Received => {
            port.update = false;
            let ours = port.port_priority.bridge.address() == own.address();
            match ours && port.port_priority.port != TreePortId(0) {
                true => PortRole::Backup,
                false => PortRole::Alternate,
            }
        }
    };
}
