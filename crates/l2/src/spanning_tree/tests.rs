//! Tests of networks of bridges in memory: for any topology and any sequence of link failures, the
//! result is a tree of minimum cost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use super::bpdu::{BPDU_LLC, ConfigBpdu, RapidFlags};
use super::port::PortRole;
use super::*;

/// One end of a link: a bridge and its port.
type LinkEnd = (usize, PortNo);

/// Bridges and the links between them.
struct Network {
    bridges: Vec<SpanningTree>,
    links: Vec<(LinkEnd, LinkEnd, bool)>,
    states: BTreeMap<LinkEnd, TreePortState>,
    wire: VecDeque<(LinkEnd, Vec<u8>)>,
    now: Instant,
    /// Bridges that flushed all learned addresses.
    flushed: BTreeSet<usize>,
    /// Number of observations of a forwarding loop.
    loops: usize,
}

impl Network {
    fn new(version: TreeVersion, ids: &[u64], links: &[(usize, usize, u32)]) -> Self {
        let bridge = |id: &u64| {
            let id = TreeBridgeId(0x8000 << 48 | id);
            SpanningTree::new(TreeSettings::new(version, id), Instant::START)
        };
        let mut network = Self {
            bridges: ids.iter().map(bridge).collect(),
            links: Vec::new(),
            states: BTreeMap::new(),
            wire: VecDeque::new(),
            now: Instant::START,
            flushed: BTreeSet::new(),
            loops: 0,
        };
        for (from, to, cost) in links {
            let ends = [*from, *to].map(|bridge| network.add_port(bridge, *cost));
            network.links.push((ends[0], ends[1], false));
        }
        network
    }

    fn add_port(&mut self, bridge: usize, path_cost: u32) -> LinkEnd {
        let tree = &mut self.bridges[bridge];
        let number = u32::try_from(tree.ports().count() + 1).expect("few");
        tree.set_port(
            PortNo(number),
            TreePortSettings {
                id: TreePortId(0x8000 | u16::try_from(number).expect("few")),
                path_cost,
                admin_edge: false,
                auto_edge: true,
                point_to_point: true,
                guards: TreeGuards::default(),
            },
        );
        (bridge, PortNo(number))
    }

    /// Connects or disconnects a link.
    fn set_link_state(&mut self, link: usize, is_up: bool) {
        let (a, b, up) = &mut self.links[link];
        *up = is_up;
        for (bridge, port) in [*a, *b] {
            self.bridges[bridge].set_link(port, is_up);
        }
        self.settle();
    }

    /// Delivers BPDUs until no bridge sends any.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            for bridge in 0..self.bridges.len() {
                for action in self.bridges[bridge].take_actions() {
                    match action {
                        TreeAction::Send(port, bytes) => {
                            self.wire.push_back(((bridge, port), bytes));
                        }
                        TreeAction::SetState(port, state) => {
                            self.states.insert((bridge, port), state);
                        }
                        TreeAction::Flush(_) | TreeAction::Guard(..) => {}
                        TreeAction::FlushAll => _ = self.flushed.insert(bridge),
                    }
                }
            }
            self.loops += usize::from(self.has_loop());
            let Some((from, bytes)) = self.wire.pop_front() else {
                return;
            };
            if let Some((bridge, port)) = self.other_end(from) {
                // A bridge rejects BPDUs that have exceeded their maximum age (9.3.4).
                let result = self.bridges[bridge].handle_bpdu(port, &bytes);
                assert!(matches!(result, Ok(()) | Err(MalformedBpdu::TooOld)));
            }
        }
        panic!("bridges send without end");
    }

    fn other_end(&self, end: LinkEnd) -> Option<LinkEnd> {
        let link = self
            .links
            .iter()
            .find(|(a, b, up)| *up && (*a == end || *b == end))?;
        Some(if link.0 == end { link.1 } else { link.0 })
    }

    fn wait(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            for bridge in 0..self.bridges.len() {
                self.bridges[bridge].handle_timeout(self.now);
            }
            self.settle();
        }
    }

    fn forwards(&self, end: LinkEnd) -> bool {
        self.states
            .get(&end)
            .is_some_and(|state| *state == TreePortState::Forwarding)
    }

    /// Returns the links on which both ports forward.
    fn tree(&self) -> Vec<(usize, usize)> {
        let open =
            |(a, b, up): &&(LinkEnd, LinkEnd, bool)| *up && self.forwards(*a) && self.forwards(*b);
        let links = self.links.iter().filter(open);
        links.map(|(a, b, _)| (a.0, b.0)).collect()
    }

    fn has_loop(&self) -> bool {
        let mut group: Vec<usize> = (0..self.bridges.len()).collect();
        for (a, b) in self.tree() {
            let (from, to) = (group[a], group[b]);
            if from == to {
                return true;
            }
            for each in group.iter_mut().filter(|each| **each == from) {
                *each = to;
            }
        }
        false
    }

    /// Returns the connected components of the topology.
    fn components(&self) -> Vec<BTreeSet<usize>> {
        let mut components: Vec<BTreeSet<usize>> = Vec::new();
        for bridge in 0..self.bridges.len() {
            components.push([bridge].into());
        }
        for (a, b, _) in self.links.iter().filter(|(_, _, up)| *up) {
            let one = components
                .iter()
                .position(|component| component.contains(&a.0))
                .expect("in one");
            let removed = components.remove(one);
            match components
                .iter_mut()
                .find(|component| component.contains(&b.0))
            {
                Some(other) => other.extend(removed),
                None => components.push(removed),
            }
        }
        components
    }

    /// Returns the minimum path costs from `root` over connected links.
    fn costs(&self, root: usize) -> BTreeMap<usize, u32> {
        let mut costs = BTreeMap::from([(root, 0)]);
        for _ in 0..self.bridges.len() {
            for (a, b, _) in self.links.iter().filter(|(_, _, up)| *up) {
                for (from, to) in [(a, b), (b, a)] {
                    let Some(cost_so_far) = costs.get(&from.0).copied() else {
                        continue;
                    };
                    let port = self.bridges[to.0].port(to.1).expect("there");
                    let cost = cost_so_far + port.settings.path_cost;
                    let stored = costs.entry(to.0).or_insert(cost);
                    *stored = cost.min(*stored);
                }
            }
        }
        costs
    }

    /// Checks that each component has a spanning tree of minimum cost.
    fn check(&self) {
        assert!(!self.has_loop(), "{:?}", self.tree());
        for component in self.components() {
            let id = |bridge: &usize| self.bridges[*bridge].settings().id;
            let root = component.iter().copied().min_by_key(id).expect("not empty");
            let costs = self.costs(root);
            for bridge in &component {
                let stored = self.bridges[*bridge].root();
                assert_eq!(stored.root, id(&root), "bridge {bridge}");
                assert_eq!(stored.cost, costs[bridge], "bridge {bridge}");
            }
            let links = self
                .tree()
                .into_iter()
                .filter(|(a, _)| component.contains(a));
            assert_eq!(
                links.count(),
                component.len() - 1,
                "{component:?}: {:?}",
                self.states
            );
        }
    }
}

/// Bridge addresses, links with their costs, and a sequence of link changes.
type NetworkHistory = (Vec<u64>, Vec<(usize, usize, u32)>, Vec<(usize, bool)>);

fn histories() -> impl Strategy<Value = NetworkHistory> {
    (2_usize..7).prop_flat_map(|bridges| {
        let ids =
            Just((1..=u64::try_from(bridges).expect("few")).collect::<Vec<_>>()).prop_shuffle();
        let link = (0..bridges, 1..bridges, 1_u32..5);
        let links = prop::collection::vec(link, 1..10);
        let links = links.prop_map(move |links| {
            let ends = |(a, step, cost)| (a, (a + step) % bridges, cost);
            links.into_iter().map(ends).collect::<Vec<_>>()
        });
        let pulls = prop::collection::vec((0_usize..10, any::<bool>()), 0..6);
        (ids, links, pulls)
    })
}

fn run_history(version: TreeVersion, wait: u32, (ids, links, pulls): NetworkHistory) {
    let mut network = Network::new(version, &ids, &links);
    for link in 0..links.len() {
        network.set_link_state(link, true);
        network.wait(u32::try_from(link % 3).expect("few"));
    }
    network.wait(wait);
    network.check();
    assert_eq!(network.loops, 0, "no loop while the network converges");
    for (link, is_up) in pulls {
        network.set_link_state(link % links.len(), is_up);
        network.wait(wait);
        network.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rstp_converges_to_a_minimum_cost_tree_after_any_failure(history in histories()) {
        run_history(TreeVersion::Rstp, 60, history);
    }

    #[test]
    fn stp_converges_to_a_minimum_cost_tree_after_any_failure(history in histories()) {
        run_history(TreeVersion::Stp, 110, history);
    }

    #[test]
    fn random_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Bpdu::parse(&bytes);
        let _ = Bpdu::parse(&[&BPDU_LLC, &[0, 0, 2, 2][..], &bytes].concat());
    }

    #[test]
    fn bpdu_encoding_round_trips(root: u64, cost: u32, bridge: u64, port: u16, bits: [bool; 5], role in 1_u8..4) {
        let role = match role {
            1 => PortRole::Alternate,
            2 => PortRole::Root,
            _ => PortRole::Designated,
        };
        let rapid = RapidFlags { role: Some(role), proposal: bits[0], agreement: bits[1], learning: bits[2], forwarding: bits[3] };
        let times = TreeTimes { message_age: 1, max_age: 20, hello_time: 2, forward_delay: 15 };
        let priority = PriorityVector { root: TreeBridgeId(root), cost, bridge: TreeBridgeId(bridge), port: TreePortId(port) };
        let config = ConfigBpdu { priority, times, change: bits[4], acknowledged: false, rapid: Some(rapid) };
        for config in [config, ConfigBpdu { rapid: None, acknowledged: bits[0], ..config }] {
            prop_assert_eq!(Bpdu::parse(&Bpdu::Config(config).bytes()), Ok(Bpdu::Config(config)));
        }
    }
}

#[test]
fn rstp_ring_recovers_from_a_failure_within_a_second() {
    let ring = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)];
    let mut network = Network::new(TreeVersion::Rstp, &[1, 2, 3, 4], &ring);
    (0..4).for_each(|link| network.set_link_state(link, true));
    network.wait(5);
    network.check();
    network.set_link_state(0, false);
    network.wait(1);
    network.check();
}

/// A port listens for the forward delay of 15 s, and learns for another (802.1D-1998, 8.4.2).
#[test]
fn stp_port_listens_and_learns_before_it_forwards() {
    let mut network = Network::new(TreeVersion::Stp, &[1, 2], &[(0, 1, 1), (0, 1, 1)]);
    network.set_link_state(0, true);
    network.set_link_state(1, true);
    network.wait(14);
    assert_eq!(network.states[&(0, PortNo(1))], TreePortState::Listening);
    network.wait(10);
    assert_eq!(network.states[&(0, PortNo(1))], TreePortState::Learning);
    network.wait(7);
    assert_eq!(network.states[&(0, PortNo(1))], TreePortState::Forwarding);
    network.check();
    let blocked = network.bridges[1].port(PortNo(2)).expect("there");
    assert_eq!(
        (blocked.role, blocked.state),
        (PortRole::Alternate, TreePortState::Discarding)
    );
}

#[test]
fn stp_neighbour_is_detected_and_gets_stp() {
    let mut network = Network::new(
        TreeVersion::Rstp,
        &[1, 2, 3],
        &[(0, 1, 1), (1, 2, 1), (2, 0, 1)],
    );
    let older = TreeSettings::new(TreeVersion::Stp, network.bridges[1].settings().id);
    network.bridges[1].configure(older);
    (0..3).for_each(|link| network.set_link_state(link, true));
    network.wait(60);
    network.check();
    let towards_it = network.bridges[0].port(PortNo(1)).expect("there");
    let other = network.bridges[0].port(PortNo(2)).expect("there");
    assert!(!towards_it.is_rapid && other.is_rapid);
}

#[test]
fn topology_change_of_stp_flushes_every_bridge() {
    for (version, expected) in [
        (TreeVersion::Stp, BTreeSet::from([0, 1, 2])),
        (TreeVersion::Rstp, BTreeSet::new()),
    ] {
        let links = [(0, 1, 1), (1, 2, 1), (2, 0, 1)];
        let mut network = Network::new(version, &[1, 2, 3], &links);
        (0..3).for_each(|link| network.set_link_state(link, true));
        network.wait(200);
        network.flushed.clear();
        network.set_link_state(2, false);
        network.wait(60);
        network.check();
        assert_eq!(network.flushed, expected);
    }
}

#[test]
fn edge_port_is_detected_after_three_seconds() {
    let mut network = Network::new(TreeVersion::Rstp, &[1], &[]);
    let (bridge, port) = network.add_port(0, 1);
    network.bridges[bridge].set_link(port, true);
    network.settle();
    network.wait(2);
    assert!(!network.forwards((bridge, port)));
    network.wait(2);
    assert!(network.forwards((bridge, port)));
    assert!(network.bridges[bridge].port(port).expect("there").is_edge);
}

#[test]
fn malformed_bpdus_are_counted_and_ignored() {
    let mut network = Network::new(TreeVersion::Rstp, &[1, 2], &[(0, 1, 1)]);
    network.set_link_state(0, true);
    network.wait(5);
    let bad: [(&[u8], MalformedBpdu); 4] = [
        (&[0xaa, 0xaa, 3], MalformedBpdu::NotSpanningTree),
        (&[0x42, 0x42, 3, 0, 0], MalformedBpdu::Short),
        (&[0x42, 0x42, 3, 0, 1, 0, 0, 9], MalformedBpdu::Unknown),
        (&[0x42, 0x42, 3, 0, 0, 2, 2, 0], MalformedBpdu::Short),
    ];
    for (bytes, malformed) in bad {
        assert_eq!(
            network.bridges[0].handle_bpdu(PortNo(1), bytes),
            Err(malformed)
        );
    }
    let info = network.bridges[0].port(PortNo(1)).expect("there");
    assert_eq!(info.counts.malformed, 4);
    network.check();
}

/// Two bridges with a link, of which the port of the first has these guards. The second bridge has
/// the better identifier.
fn guarded_pair(version: TreeVersion, guards: TreeGuards) -> Network {
    let mut network = Network::new(version, &[2, 1], &[(0, 1, 1)]);
    let settings = network.bridges[0].port(PortNo(1)).expect("there").settings;
    network.bridges[0].set_port(PortNo(1), TreePortSettings { guards, ..settings });
    network.set_link_state(0, true);
    network
}

fn guard_of_first(network: &Network) -> (Option<TreeGuard>, TreePortState, u64) {
    let info = network.bridges[0].port(PortNo(1)).expect("there");
    (info.guard, info.state, info.counts.guarded)
}

#[test]
fn bpdu_guard_shuts_the_port_until_it_is_reopened() {
    let guards = TreeGuards {
        bpdu: true,
        ..TreeGuards::default()
    };
    for version in [TreeVersion::Stp, TreeVersion::Rstp] {
        let mut network = guarded_pair(version, guards);
        network.wait(100);
        let shut = (Some(TreeGuard::Bpdu), TreePortState::Disabled, 1);
        assert_eq!(guard_of_first(&network), shut);
        assert_eq!(network.bridges[0].root_port(), None);
        // A link that flaps at the other end does not open the port.
        network.set_link_state(0, false);
        network.set_link_state(0, true);
        assert_eq!(guard_of_first(&network), shut);
        // The first BPDU after the port is opened shuts it again.
        network.bridges[0].reopen_port(PortNo(1));
        assert_eq!(guard_of_first(&network).0, None);
        network.wait(3);
        assert_eq!(guard_of_first(&network).0, Some(TreeGuard::Bpdu));
        assert_eq!(guard_of_first(&network).2, 2);
        let settings = network.bridges[0].port(PortNo(1)).expect("there").settings;
        let guards = TreeGuards::default();
        network.bridges[0].set_port(PortNo(1), TreePortSettings { guards, ..settings });
        network.wait(60);
        assert_eq!(guard_of_first(&network).0, None);
        assert_eq!(network.bridges[0].root_port(), Some(PortNo(1)));
        network.check();
    }
}

#[test]
fn bpdu_guard_reopens_the_port_after_its_timeout() {
    let guards = TreeGuards {
        bpdu: true,
        recovery_seconds: Some(30),
        ..TreeGuards::default()
    };
    let mut network = guarded_pair(TreeVersion::Rstp, guards);
    network.wait(20);
    assert_eq!(guard_of_first(&network).0, Some(TreeGuard::Bpdu));
    network.links[0].2 = false;
    network.wait(20);
    let open = (None, TreePortState::Forwarding, 1);
    assert_eq!(guard_of_first(&network), open);
}

#[test]
fn malformed_bpdu_shuts_a_port_with_bpdu_guard_and_other_llc_does_not() {
    let guards = TreeGuards {
        bpdu: true,
        ..TreeGuards::default()
    };
    let mut network = guarded_pair(TreeVersion::Rstp, guards);
    network.bridges[0].reopen_port(PortNo(1));
    let other = network.bridges[0].handle_bpdu(PortNo(1), &[0xaa, 0xaa, 3]);
    assert_eq!(other, Err(MalformedBpdu::NotSpanningTree));
    assert_eq!(guard_of_first(&network).0, None);
    let short = network.bridges[0].handle_bpdu(PortNo(1), &[0x42, 0x42, 3, 0, 0]);
    assert_eq!(short, Err(MalformedBpdu::Short));
    assert_eq!(guard_of_first(&network).0, Some(TreeGuard::Bpdu));
}

#[test]
fn root_guard_blocks_the_port_while_superior_bpdus_arrive() {
    let guards = TreeGuards {
        root: true,
        ..TreeGuards::default()
    };
    for version in [TreeVersion::Stp, TreeVersion::Rstp] {
        let mut network = guarded_pair(version, guards);
        network.wait(60);
        let blocked = (Some(TreeGuard::Root), TreePortState::Discarding, 1);
        assert_eq!(guard_of_first(&network), blocked);
        assert_eq!(network.bridges[0].root_port(), None);
        assert_eq!(
            network.bridges[0].root().root,
            network.bridges[0].settings().id
        );
        // The other bridge falls silent: its information expires after its maximum age.
        network.links[0].2 = false;
        network.wait(60);
        let open = (None, TreePortState::Forwarding, 1);
        assert_eq!(guard_of_first(&network), open);
    }
}

#[test]
fn root_guard_admits_inferior_bridges() {
    let guards = TreeGuards {
        root: true,
        ..TreeGuards::default()
    };
    let mut network = Network::new(TreeVersion::Rstp, &[1, 2], &[(0, 1, 1)]);
    let settings = network.bridges[0].port(PortNo(1)).expect("there").settings;
    network.bridges[0].set_port(PortNo(1), TreePortSettings { guards, ..settings });
    network.set_link_state(0, true);
    network.wait(5);
    assert_eq!(
        guard_of_first(&network),
        (None, TreePortState::Forwarding, 0)
    );
    network.check();
}
