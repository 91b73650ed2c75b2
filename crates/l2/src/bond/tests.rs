//! Tests of bonds on simulated time.

use base::Instant;
use packet::MacAddr;
use proptest::prelude::*;

use super::share::Share;
use super::*;
use crate::lacp::LacpStatus;

const ONE: PortNo = PortNo(1);
const TWO: PortNo = PortNo(2);
/// One hash for each bucket.
const HASHES: u32 = 256;
const STATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn bond(settings: BondSettings) -> Bond {
    let mut bond = Bond::new(settings);
    bond.configure(settings, &[ONE, TWO], at(0));
    for port in [ONE, TWO] {
        bond.handle_carrier(port, true, at(0));
    }
    bond
}

fn mode(mode: BondMode) -> BondSettings {
    BondSettings {
        mode,
        ..BondSettings::default()
    }
}

fn is_enabled(bond: &Bond, desired: PortNo) -> bool {
    let mut members = bond.members();
    members.any(|(port, member)| port == desired && member.is_enabled())
}

fn view(bond: &mut Bond) -> BondView {
    bond.poll_view().expect("the view has changed")
}

#[test]
fn active_member_changes_only_on_failure() {
    let mut bond = bond(mode(BondMode::ActiveBackup));
    assert_eq!(view(&mut bond).egress, BondEgress::One(ONE));
    assert!(bond.poll_learning_packets() && !bond.poll_learning_packets());
    bond.handle_carrier(ONE, false, at(10));
    let published = view(&mut bond);
    assert_eq!(published.egress, BondEgress::One(TWO));
    assert!(bond.poll_learning_packets());
    for to in [STATION, MacAddr::BROADCAST] {
        assert_eq!(published.verdict(ONE, to), BondVerdict::Drop);
        assert_eq!(published.verdict(TWO, to), BondVerdict::Accept);
    }
    bond.handle_carrier(ONE, true, at(20));
    assert_eq!(view(&mut bond).egress, BondEgress::One(TWO));
    bond.handle_carrier(TWO, false, at(30));
    bond.handle_carrier(ONE, false, at(40));
    assert_eq!(view(&mut bond).egress, BondEgress::None);
    assert_eq!(bond.active(), None);
}

#[test]
fn primary_is_active_if_enabled() {
    let mut bond = bond(BondSettings {
        primary: Some(TWO),
        ..mode(BondMode::ActiveBackup)
    });
    assert_eq!(bond.active(), Some(TWO));
    bond.handle_carrier(TWO, false, at(10));
    assert_eq!(bond.active(), Some(ONE));
    bond.handle_carrier(TWO, true, at(20));
    assert_eq!(bond.active(), Some(TWO));
}

#[test]
fn multicast_is_accepted_from_all_members_if_configured() {
    for (all_members_active, other) in
        [(false, BondVerdict::Drop), (true, BondVerdict::DropIfMoved)]
    {
        let mut bond = bond(BondSettings {
            all_members_active,
            ..mode(BondMode::BalanceSlb)
        });
        let published = view(&mut bond);
        let many = [ONE, TWO].map(|port| published.verdict(port, MacAddr::BROADCAST));
        assert_eq!(many, [BondVerdict::DropIfMoved, other]);
    }
}

#[test]
fn delays_apply_unless_no_member_is_enabled() {
    let mut bond = bond(BondSettings {
        updelay: Duration::from_millis(100),
        downdelay: Duration::from_millis(50),
        ..mode(BondMode::ActiveBackup)
    });
    // The first member was enabled at once, the second waits for its delay.
    assert_eq!(
        (bond.active(), bond.next_timeout()),
        (Some(ONE), Some(at(100)))
    );
    bond.handle_timeout(at(99));
    assert!(!is_enabled(&bond, TWO));
    bond.handle_timeout(at(100));
    assert!(is_enabled(&bond, TWO));
    bond.handle_carrier(ONE, false, at(200));
    assert_eq!(
        (bond.active(), bond.next_timeout()),
        (Some(ONE), Some(at(250)))
    );
    // The carrier returns within the delay.
    bond.handle_carrier(ONE, true, at(240));
    bond.handle_timeout(at(250));
    assert_eq!(bond.active(), Some(ONE));
    bond.handle_carrier(ONE, false, at(300));
    bond.handle_timeout(at(350));
    assert_eq!(bond.active(), Some(TWO));
}

#[test]
fn balance_slb_distributes_sources_and_drops_returned_frames() {
    let mut bond = bond(mode(BondMode::BalanceSlb));
    let published = view(&mut bond);
    let count = |published: &BondView, port| {
        let exits = (0..HASHES).filter(|hash| published.egress_port(*hash) == Some(port));
        exits.count()
    };
    assert_eq!((count(&published, ONE), count(&published, TWO)), (128, 128));
    let both = [ONE, TWO];
    let verdicts = |to| both.map(|port| published.verdict(port, to));
    assert_eq!(verdicts(STATION), [BondVerdict::DropIfMoved; 2]);
    let many = verdicts(MacAddr::BROADCAST);
    assert_eq!(many, [BondVerdict::DropIfMoved, BondVerdict::Drop]);
    bond.handle_carrier(ONE, false, at(10));
    assert_eq!(count(&view(&mut bond), TWO), BUCKETS);
    bond.handle_carrier(ONE, true, at(20));
    assert_eq!(count(&view(&mut bond), ONE), 128);
}

#[test]
fn balance_tcp_distributes_flows_only_with_a_partner() {
    let mut bond = bond(mode(BondMode::BalanceTcp));
    assert_eq!(view(&mut bond).egress, BondEgress::None);
    bond.handle_lacp(LacpStatus::Configured, |_| false, at(10));
    let published = view(&mut bond);
    assert_eq!(published.verdict(ONE, STATION), BondVerdict::Drop);
    bond.handle_lacp(LacpStatus::Negotiated, |port| port == TWO, at(20));
    let published = view(&mut bond);
    assert!((0..HASHES).all(|hash| published.egress_port(hash) == Some(TWO)));
    assert_eq!(
        published.verdict(TWO, MacAddr::BROADCAST),
        BondVerdict::Accept
    );
    assert_eq!(published.verdict(ONE, STATION), BondVerdict::Drop);
    assert!(!bond.poll_learning_packets());
    // Without a partner, one member carries all frames if the fallback is configured.
    let lacp_fallback = BondSettings {
        lacp_fallback: true,
        ..mode(BondMode::BalanceTcp)
    };
    bond.configure(lacp_fallback, &[ONE, TWO], at(30));
    bond.handle_lacp(LacpStatus::Configured, |_| true, at(30));
    assert_eq!(view(&mut bond).egress, BondEgress::One(TWO));
}

#[test]
fn admin_state_holds_until_the_carrier_changes() {
    let mut bond = bond(mode(BondMode::ActiveBackup));
    bond.set_enabled(ONE, false, at(10));
    assert_eq!(bond.active(), Some(TWO));
    bond.handle_timeout(at(1000));
    assert!(!is_enabled(&bond, ONE) && !bond.set_active_member(ONE));
    bond.handle_carrier(ONE, false, at(1000));
    bond.handle_carrier(ONE, true, at(1001));
    assert!(bond.set_active_member(ONE));
    assert_eq!(bond.active(), Some(ONE));
}

#[test]
fn migrated_bucket_stays_on_its_member() {
    let mut bond = bond(mode(BondMode::BalanceSlb));
    let published = view(&mut bond);
    let mut hashes = (0..HASHES).filter(|hash| published.egress_port(*hash) == Some(TWO));
    let hash = hashes.next().expect("each member has buckets");
    assert!(bond.migrate(bucket(hash), ONE));
    bond.handle_timeout(at(10));
    assert_eq!(view(&mut bond).egress_port(hash), Some(ONE));
}

#[test]
fn source_hashes_equal_those_of_open_vswitch() {
    let address = MacAddr::from_u64(1);
    assert_eq!(bucket(hash_source(address, 0, 0)), 68);
    assert_eq!(bucket(hash_source(address, 1, 1)), 46);
}

#[test]
fn loads_are_balanced_once_and_then_stable() {
    let mut bond = bond(BondSettings {
        rebalance_interval: Some(REBALANCE_INTERVAL),
        ..mode(BondMode::BalanceSlb)
    });
    let published = view(&mut bond);
    let mut bytes = [0; BUCKETS];
    let hashes = (0..HASHES).zip(&mut bytes);
    let of_one = hashes.filter(|(hash, _)| published.egress_port(*hash) == Some(ONE));
    of_one.take(4).for_each(|(_, bytes)| *bytes = 1_000_000);
    bond.handle_loads(&bytes);
    let due = bond.next_timeout().expect("a rebalancing is due");
    bond.handle_timeout(due);
    assert!(bond.poll_view().is_some());
    assert_eq!([ONE, TWO].map(|port| bond.loads_of(port).count()), [2, 2]);
    bond.handle_loads(&bytes);
    bond.handle_timeout(due + REBALANCE_INTERVAL);
    assert!(bond.poll_view().is_none());
}

proptest! {
    /// Every bucket has an enabled member, and no member has fewer than its fair share.
    #[test]
    fn buckets_have_enabled_members_and_fair_counts(steps in proptest::collection::vec(
        (proptest::collection::btree_set(1u32..8, 1..6), 0u64..1_000_000), 1..20)) {
        let mut share = Share::new();
        for (used, load) in steps {
            let used: Vec<_> = used.into_iter().map(PortNo).collect();
            share.redistribute(&used);
            for port in &used {
                let own = share.bucket_members.iter().filter(|member| **member == Some(*port));
                prop_assert!(own.count() >= BUCKETS / used.len());
            }
            prop_assert!(share.bucket_members.iter().all(|member| member.is_some_and(|port| used.contains(&port))));
            for (index, bytes) in (0..).zip(&mut share.loads) {
                *bytes = load * (index % 17);
            }
            let spread = |share: &Share| {
                let loads: Vec<_> = used.iter().map(|port| share.load_of(*port)).collect();
                loads.iter().max().expect("one is enabled") - loads.iter().min().expect("one is enabled")
            };
            let before = spread(&share);
            share.rebalance(&used);
            // Rebalancing halves the loads at its end.
            prop_assert!(spread(&share) <= before / 2 + 256);
        }
    }
}
