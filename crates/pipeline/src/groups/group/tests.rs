//! Properties of select groups that no case can state: shares, and the flows that move when buckets
//! change.

use flow::text::parse_group_line;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn group(line: &str) -> Group {
    let command = parse_group_line(line).expect(line);
    Group::new(
        &command,
        None,
        &mut CounterAllocator::new(1),
        Instant::START,
    )
}

/// Returns a select group whose buckets output to these ports, with these weights.
fn select(buckets: &[(u32, u16)]) -> Group {
    let bucket = |(port, weight): &(u32, u16)| format!(",bucket=weight:{weight},output:{port}");
    let buckets: String = buckets.iter().map(bucket).collect();
    group(&format!("group_id=1,type=select{buckets}"))
}

/// Returns the action of the bucket that a hash selects.
fn port(group: &Group, hash: u64) -> Option<&Action> {
    let index = group.draw(hash, |_| true)?;
    group.buckets[index].actions().first()
}

/// Returns `count` different hashes.
fn hashes(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|number| StableHasher::new().of(number))
}

/// Returns the share of each bucket among `count` packets.
fn shares(group: &Group, count: u64) -> Vec<f64> {
    let mut shares = vec![0.0; group.buckets.len()];
    for hash in hashes(count) {
        let index = group.draw(hash, |_| true).expect("somebody gets it");
        shares[index] += 1.0;
    }
    shares
}

#[test]
fn buckets_get_their_weights_share() {
    const FRAMES: f64 = 100_000.0;
    let weights = [1_u16, 2, 4, 8, 0, 85];
    let ports = (1..).zip(weights);
    let group = select(&ports.collect::<Vec<_>>());
    for (share, weight) in shares(&group, 100_000).iter().zip(weights) {
        let chance = f64::from(weight) / 100.0;
        let deviation = (FRAMES * chance * (1.0 - chance)).sqrt();
        let off = (share - FRAMES * chance).abs();
        assert!(off <= 4.0 * deviation, "{weight}: {share}");
    }
}

#[test]
fn buckets_that_do_the_same_get_their_shares_too() {
    let group = select(&[(1, 1), (1, 1), (1, 2)]);
    let [a, b, c] = shares(&group, 40_000)[..] else {
        panic!("three buckets");
    };
    assert!((a - 10_000.0).abs() < 400.0 && (b - 10_000.0).abs() < 400.0);
    assert!((c - 20_000.0).abs() < 400.0);
}

#[test]
fn live_buckets_share_the_packets_of_a_dead_one_by_weight() {
    let group = select(&[(1, 1), (2, 1), (3, 2)]);
    let (mut moved, mut to_third) = (0, 0);
    for hash in hashes(40_000) {
        let before = group.draw(hash, |_| true).expect("a bucket");
        let first = &raw const group.buckets[0];
        let after = group.draw(hash, |bucket| &raw const *bucket != first);
        if before == 0 {
            moved += 1;
            to_third += u32::from(after == Some(2));
        } else {
            assert_eq!(after, Some(before));
        }
    }
    assert!((9_600..10_400).contains(&moved), "{moved}");
    let share = f64::from(to_third) / f64::from(moved);
    assert!((share - 2.0 / 3.0).abs() < 0.03, "{share}");
}

#[test]
fn group_without_a_live_bucket_selects_none() {
    let group = select(&[(1, 1), (2, 1)]);
    assert_eq!(group.draw(7, |_| false), None);
    assert_eq!(select(&[(1, 0)]).draw(7, |_| true), None);
}

proptest! {
    #[test]
    fn bucket_change_moves_only_its_own_packets(
        weights in vec(1..100_u16, 2..20),
        changed in any::<proptest::sample::Index>(),
        weight in 0..200_u16,
        turn in 0..20_usize,
    ) {
        let mut buckets: Vec<_> = (1..).zip(weights).collect();
        let before = select(&buckets);
        let changed = changed.index(buckets.len());
        let (moving, old_weight) = buckets[changed];
        buckets[changed].1 = weight;
        // The order of buckets has no effect.
        let turn = turn % buckets.len();
        buckets.rotate_left(turn);
        let after = select(&buckets);
        let moving = Action::output(base::PortNo(moving));
        for hash in hashes(500) {
            let (from, to) = (port(&before, hash), port(&after, hash));
            if from != to {
                let grew = weight > old_weight;
                prop_assert_eq!(if grew { to } else { from }, Some(&moving));
            }
        }
    }
}

/// An upgrade of the switch must move no flow, so the test states the hash once more.
#[test]
fn symmetric_hash_equals_that_of_two_lists() {
    use Field as F;
    let less_first = |a: Option<u128>, b: Option<u128>| (a.min(b), a.max(b));
    let (mut key, registers) = (FlowKey::new(), flow::PipelineFields::new(base::PortNo(1)));
    for frame in [
        "eth",
        "eth(src=02:00:00:00:00:09,dst=02:00:00:00:00:01) / ipv4(src=10.0.0.9) / tcp(src=9,dst=80)",
        "eth / vlan(vid=5) / ipv6 / udp(src=1,dst=2)",
        "eth / arp",
        "eth / ipv4 / sctp",
        "eth / ipv4 / icmp",
    ] {
        let stack: packet::build::Stack = frame.parse().expect(frame);
        let headers = packet::Headers::parse(&stack.build(), Depth::Transport).expect(frame);
        key.fill(&headers, &registers);
        let of = |field| key.get(field);
        let pairs = [
            less_first(of(F::EthSrc), of(F::EthDst)),
            less_first(
                of(F::Ipv4Src).or_else(|| of(F::ArpSpa)),
                of(F::Ipv4Dst).or_else(|| of(F::ArpTpa)),
            ),
            less_first(of(F::Ipv6Src), of(F::Ipv6Dst)),
            less_first(of(F::TcpSrc), of(F::TcpDst)),
            less_first(of(F::UdpSrc), of(F::UdpDst)),
            less_first(of(F::SctpSrc), of(F::SctpDst)),
        ];
        let others = [of(F::VlanVid), of(F::EthType), of(F::IpProto)];
        assert_eq!(
            symmetric_hash(&key),
            StableHasher::new().of((pairs, others)),
            "{frame}"
        );
    }
}
