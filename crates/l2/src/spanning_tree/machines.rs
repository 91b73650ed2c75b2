//! The state machines of one port (IEEE 802.1D-2004, 17.22 to 17.31). Each takes at most one step
//! and returns whether it did; [`SpanningTree`] runs them until none does.

mod change;
mod information;
mod transition;
mod transmit;

use super::port::{Migration, PortRole};
use super::{MIGRATE_TIME, SpanningTree, TreeVersion};

/// Takes one step of each machine of a port. Returns whether any did something.
pub(super) fn step(tree: &mut SpanningTree, index: usize) -> bool {
    information::step(tree, index)
        | migrate(tree, index)
        | detect_edge(tree, index)
        | transition::step(tree, index)
        | update_state(tree, index)
        | change::step(tree, index)
        | transmit::step(tree, index)
}

/// Returns whether the bridge uses RSTP (`rstpVersion`, 17.20.11).
fn is_rapid(tree: &SpanningTree) -> bool {
    tree.settings.version == TreeVersion::Rstp
}

/// The port protocol migration machine (17.24).
fn migrate(tree: &mut SpanningTree, index: usize) -> bool {
    let version = tree.settings.version;
    let rapid = is_rapid(tree);
    let port = &mut tree.ports[index];
    match port.migration {
        Migration::Checking if port.migration_delay_while == 0 => {
            port.migration = Migration::Sensing;
            (port.received_rstp, port.received_stp) = (false, false);
        }
        Migration::Checking => return false,
        Migration::Older if port.migration_delay_while == 0 || !port.enabled || port.mcheck => {
            port.migration = Migration::Sensing;
            (port.received_rstp, port.received_stp) = (false, false);
        }
        Migration::Older => return false,
        Migration::Sensing
            if !port.enabled || port.mcheck || (rapid && !port.send_rstp && port.received_rstp) =>
        {
            // A port without a link does not sense the protocol.
            if !port.enabled && !port.mcheck {
                return false;
            }
            port.check_migration(version);
        }
        Migration::Sensing if port.send_rstp && port.received_stp => {
            port.migration = Migration::Older;
            port.send_rstp = false;
            port.migration_delay_while = MIGRATE_TIME;
        }
        Migration::Sensing => return false,
    }
    true
}

/// The bridge detection machine (17.25).
fn detect_edge(tree: &mut SpanningTree, index: usize) -> bool {
    let port = &mut tree.ports[index];
    let silent =
        port.edge_delay_while == 0 && port.settings.auto_edge && port.send_rstp && port.proposing;
    let becomes = !port.edge && ((!port.enabled && port.settings.admin_edge) || silent);
    port.edge |= becomes;
    becomes
}

/// The port state transition machine (17.30).
fn update_state(tree: &mut SpanningTree, index: usize) -> bool {
    let port = &mut tree.ports[index];
    let (learning, forwarding) = match (port.learning, port.forwarding) {
        (false, _) => (port.learn, false),
        (true, false) => (port.learn, port.learn && port.forward),
        (true, true) => (port.forward, port.forward),
    };
    let moved = (learning, forwarding) != (port.learning, port.forwarding);
    (port.learning, port.forwarding) = (learning, forwarding);
    tree.note_state(index);
    moved
}

/// Returns whether all ports except the root port are synchronized (`allSynced`, 17.20.3).
fn all_synced(tree: &SpanningTree) -> bool {
    tree.ports.iter().all(|port| {
        port.selected
            && port.role == port.selected_role
            && (port.role == PortRole::Root || port.synced)
    })
}

/// Returns whether no other port was the root port recently (`reRooted`, 17.20.10).
fn rerooted(tree: &SpanningTree, index: usize) -> bool {
    let mut others = tree.ports.iter().enumerate();
    others.all(|(other, port)| other == index || port.recent_root_while == 0)
}
