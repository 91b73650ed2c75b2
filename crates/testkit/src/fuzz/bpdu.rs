//! BPDUs on the ports of a bridge with a spanning tree, at any times. No bytes cause a panic, and a
//! tree of a few ports does a bounded amount of work.

use std::time::Duration;

use base::{Instant, PortNo};
use config::TreeGuards;
use l2::spanning_tree::{
    SpanningTree, TreeAction, TreeBridgeId, TreePortId, TreePortSettings, TreeSettings, TreeVersion,
};
use packet::MacAddr;

/// Ports of the bridge.
const PORTS: u16 = 3;
/// The largest number of BPDUs. More only cost time.
const BPDUS_MAX: usize = 64;
/// The most actions that one event causes: those of each port, several times.
const ACTIONS_MAX: usize = 64;

/// Receives the BPDUs in `data`. Each begins with a byte of options (the port, and the pause before
/// it) and its length.
///
/// # Panics
/// If one event causes many actions.
pub fn bpdu(data: &[u8]) {
    let Some((options, mut rest)) = data.split_first() else {
        return;
    };
    let version = match options % 2 {
        0 => TreeVersion::Rstp,
        _ => TreeVersion::Stp,
    };
    let mut now = Instant::START;
    let id = TreeBridgeId::new(0x8000, MacAddr([2, 0, 0, 0, 0, 1]));
    let mut tree = SpanningTree::new(TreeSettings::new(version, id), now);
    for number in 1..=PORTS {
        tree.set_port(PortNo(number.into()), port(number));
        tree.set_link(PortNo(number.into()), true);
    }
    take(&mut tree);
    for _ in 0..BPDUS_MAX {
        let Some(([options, len], tail)) = rest.split_first_chunk::<2>() else {
            break;
        };
        let (bytes, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        now += Duration::from_millis(u64::from(options >> 3) * 250);
        tree.handle_timeout(now);
        take(&mut tree);
        // A malformed BPDU is refused, and counted.
        let _ = tree.handle_bpdu(PortNo(u32::from(options % 4)), bytes);
        for (to, bytes) in take(&mut tree) {
            let mut peer = SpanningTree::new(TreeSettings::new(version, id), now);
            peer.set_port(to, port(1));
            peer.set_link(to, true);
            // Information of the maximum age is passed on once more, and refused by its receiver.
            if let Err(error) = peer.handle_bpdu(to, &bytes) {
                assert!(error.to_string().contains("maximum age"), "{bytes:?}");
            }
        }
    }
}

/// Takes the actions of an event. Returns the sent BPDUs.
fn take(tree: &mut SpanningTree) -> Vec<(PortNo, Vec<u8>)> {
    let actions = tree.take_actions();
    assert!(actions.len() <= ACTIONS_MAX, "{} actions", actions.len());
    let sent = actions.into_iter().filter_map(|action| match action {
        TreeAction::Send(port, bytes) => Some((port, bytes)),
        _ => None,
    });
    sent.collect()
}

fn port(number: u16) -> TreePortSettings {
    TreePortSettings {
        id: TreePortId(0x8000 | number),
        path_cost: 20_000,
        admin_edge: false,
        auto_edge: true,
        point_to_point: true,
        guards: TreeGuards::default(),
    }
}
