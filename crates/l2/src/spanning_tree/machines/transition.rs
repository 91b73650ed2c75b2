//! The port role transitions machine (IEEE 802.1D-2004, 17.29): the time at which a port of each
//! role learns and forwards. A root port forwards at once if no recent root port forwards any more.
//! A designated port forwards when the downstream bridge agrees, or after the forward delay.

use super::super::SpanningTree;
use super::super::port::{PortRole, TreePort};
use super::{all_synced, is_rapid, rerooted};

pub(super) fn step(tree: &mut SpanningTree, index: usize) -> bool {
    let port = &tree.ports[index];
    if !port.selected || port.update {
        return false;
    }
    if port.role != port.selected_role {
        adopt_role(tree, index);
        return true;
    }
    match port.role {
        PortRole::Disabled => step_disabled(tree, index),
        PortRole::Root => step_root(tree, index),
        PortRole::Designated => step_designated(tree, index),
        PortRole::Alternate | PortRole::Backup => step_alternate(tree, index),
    }
}

fn adopt_role(tree: &mut SpanningTree, index: usize) {
    let forward_delay = u32::from(tree.root_times.forward_delay);
    let port = &mut tree.ports[index];
    port.role = port.selected_role;
    match port.role {
        PortRole::Disabled | PortRole::Alternate | PortRole::Backup => {
            port.learn = false;
            port.forward = false;
        }
        PortRole::Root => port.recent_root_while = forward_delay,
        PortRole::Designated => {}
    }
    tree.note_state(index);
}

/// Returns the time for which a port without a role discards: the maximum age of information
/// (17.29.1); with STP the forward delay, the time in the state Listening (802.1D-1998, 8.4.2).
fn idle_delay(tree: &SpanningTree) -> u32 {
    u32::from(match is_rapid(tree) {
        true => tree.root_times.max_age,
        false => tree.root_times.forward_delay,
    })
}

fn step_disabled(tree: &mut SpanningTree, index: usize) -> bool {
    let idle_delay = idle_delay(tree);
    let port = &mut tree.ports[index];
    let moved = (port.learning || port.forwarding)
        || port.sync
        || port.reroot
        || !port.synced
        || port.forward_delay_while != idle_delay;
    if moved && !port.learning && !port.forwarding {
        port.forward_delay_while = idle_delay;
        port.synced = true;
        port.recent_root_while = 0;
        port.sync = false;
        port.reroot = false;
        return true;
    }
    false
}

fn step_root(tree: &mut SpanningTree, index: usize) -> bool {
    let synced = all_synced(tree);
    let free = rerooted(tree, index) && is_rapid(tree);
    let forward_delay = u32::from(tree.root_times.forward_delay);
    let delay = tree.ports[index].delay();
    let port = &mut tree.ports[index];
    let may = port.forward_delay_while == 0 || (free && port.recent_backup_while == 0);
    if port.proposed && !port.agree {
        port.proposed = false;
        set_sync(tree);
    } else if (synced && !port.agree) || (port.proposed && port.agree) {
        agree(port);
        port.sync = false;
    } else if !port.forward && !port.reroot {
        tree.ports.iter_mut().for_each(|port| port.reroot = true);
    } else if port.reroot && port.forward {
        port.reroot = false;
    } else if port.recent_root_while != forward_delay {
        port.recent_root_while = forward_delay;
    } else if may && !port.learn {
        port.forward_delay_while = delay;
        port.learn = true;
    } else if may && !port.forward {
        port.forward_delay_while = 0;
        port.forward = true;
    } else {
        return false;
    }
    true
}

fn step_designated(tree: &mut SpanningTree, index: usize) -> bool {
    let max_age = u32::from(tree.root_times.max_age);
    let port = &mut tree.ports[index];
    let delay = port.delay();
    let stops = (port.sync && !port.synced)
        || (port.reroot && port.recent_root_while != 0)
        || port.disputed;
    let may = (port.forward_delay_while == 0 || port.agreed || port.edge)
        && (port.recent_root_while == 0 || !port.reroot)
        && !port.sync;
    if !port.forward && !port.agreed && !port.proposing && !port.edge {
        port.proposing = true;
        port.edge_delay_while = match port.settings.point_to_point {
            true => super::super::MIGRATE_TIME,
            false => max_age,
        };
        port.new_info = true;
    } else if (!port.learning && !port.forwarding && !port.synced)
        || (port.agreed && !port.synced)
        || (port.edge && !port.synced)
        || (port.sync && port.synced)
    {
        port.recent_root_while = 0;
        port.synced = true;
        port.sync = false;
    } else if port.recent_root_while == 0 && port.reroot {
        port.reroot = false;
    } else if stops && !port.edge && (port.learn || port.forward) {
        port.learn = false;
        port.forward = false;
        port.disputed = false;
        port.forward_delay_while = delay;
    } else if may && !port.learn {
        port.learn = true;
        port.forward_delay_while = delay;
    } else if may && !port.forward {
        port.forward = true;
        port.forward_delay_while = 0;
        port.agreed = port.send_rstp;
    } else {
        return false;
    }
    true
}

fn step_alternate(tree: &mut SpanningTree, index: usize) -> bool {
    let synced = all_synced(tree);
    let port = &mut tree.ports[index];
    if port.learning || port.forwarding {
        return false;
    }
    let delay = port.delay();
    let backup_while = 2 * u32::from(port.port_times.hello_time);
    if port.proposed && !port.agree {
        port.proposed = false;
        set_sync(tree);
    } else if (synced && !port.agree) || (port.proposed && port.agree) {
        agree(port);
    } else if port.forward_delay_while != delay || port.sync || port.reroot || !port.synced {
        port.forward_delay_while = delay;
        port.synced = true;
        port.recent_root_while = 0;
        port.sync = false;
        port.reroot = false;
    } else if port.role == PortRole::Backup && port.recent_backup_while != backup_while {
        port.recent_backup_while = backup_while;
    } else {
        return false;
    }
    true
}

/// `setSyncTree` (17.21.14).
fn set_sync(tree: &mut SpanningTree) {
    tree.ports.iter_mut().for_each(|port| port.sync = true);
}

const fn agree(port: &mut TreePort) {
    port.proposed = false;
    port.agree = true;
    port.new_info = true;
}
