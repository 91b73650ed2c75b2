//! Tests of learning, moves, expiry and eviction.

use super::*;
use config::AGEING_TIME;

fn address(number: u64) -> FdbKey {
    FdbKey {
        vid: 0,
        mac: MacAddr::from_u64(number),
    }
}

fn ports_of(table: &ForwardingDatabase) -> Vec<(u64, u32)> {
    let view = table.view();
    view.iter()
        .map(|(address, station)| (address.mac.to_u64(), station.port().0))
        .collect()
}

#[test]
fn station_moves_with_its_frames_and_only_changes_are_reported() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    assert!(table.learn(address(1), PortNo(1), Instant::START));
    assert!(!table.learn(address(1), PortNo(1), Instant::from_secs(5)));
    assert!(table.learn(address(1), PortNo(2), Instant::from_secs(6)));
    assert_eq!(ports_of(&table), [(1, 2)]);
    assert_eq!((table.counts().learned, table.counts().moved), (1, 1));
    assert!(!table.remove_port(PortNo(1)) && table.remove_port(PortNo(2)) && table.is_empty());
}

#[test]
fn address_in_two_vlans_is_two_stations() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    table.learn(address(1), PortNo(1), Instant::START);
    table.learn(
        FdbKey {
            vid: 10,
            ..address(1)
        },
        PortNo(2),
        Instant::START,
    );
    assert_eq!(table.len(), 2);
}

#[test]
fn stations_expire_unless_a_worker_marks_them() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    table.learn(address(1), PortNo(1), Instant::START);
    table.learn(address(2), PortNo(1), Instant::START);
    table
        .view()
        .find(address(2))
        .expect("learned")
        .mark_seen(Instant::from_secs(200));
    assert_eq!(table.next_expiry(), Some(Instant::from_secs(300)));
    assert!(!table.expire(Instant::from_secs(299)));
    assert!(table.expire(Instant::from_secs(300)));
    assert_eq!(ports_of(&table), [(2, 1)]);
    assert_eq!(table.next_expiry(), Some(Instant::from_secs(500)));
    assert!(table.expire(Instant::from_secs(500)) && table.next_expiry().is_none());
}

#[test]
fn address_flood_evicts_stations_of_its_own_port() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    table.learn(address(100), PortNo(1), Instant::START);
    for number in 1..=50 {
        table.learn(address(number), PortNo(2), Instant::from_secs(number));
    }
    assert_eq!(ports_of(&table), [(48, 2), (49, 2), (50, 2), (100, 1)]);
    assert_eq!((table.len(), table.counts().evicted), (4, 47));
}

#[test]
fn static_entries_do_not_move_age_or_get_evicted() {
    let (mut table, start) = (ForwardingDatabase::new(3, AGEING_TIME), Instant::START);
    table.learn(address(1), PortNo(1), start);
    let before = table.add_static(address(1), PortNo(2), start);
    let before = before.expect("there is room").expect("it was learned");
    assert!(before.port() == PortNo(1) && !before.is_static());
    assert!(!table.learn(address(1), PortNo(1), Instant::from_secs(1)));
    let again = table.add_static(address(1), PortNo(2), start);
    assert!(again.is_ok_and(|before| before.is_none()));
    assert!(!table.expire(Instant::from_secs(9999)) && table.next_expiry().is_none());
    assert!(!table.flush() && !table.flush_port(PortNo(2)));
    assert_eq!((ports_of(&table), table.static_count()), (vec![(1, 2)], 1));
    // Learned stations are evicted for static ones; static ones are never evicted.
    table.learn(address(4), PortNo(1), start);
    table.learn(address(5), PortNo(1), start);
    for number in [2, 3] {
        assert!(table.add_static(address(number), PortNo(1), start).is_ok());
    }
    assert!(!table.learn(address(6), PortNo(1), start));
    assert_eq!(
        table.add_static(address(6), PortNo(1), start).err(),
        Some(FdbFull)
    );
    assert!(!table.set_limits(1, AGEING_TIME) && table.len() == 3);
    assert!(table.remove_static(address(1)) && !table.remove_static(address(1)));
    assert!(table.remove_port(PortNo(1)) && table.is_empty());
    let counts = FdbCounts {
        learned: 3,
        evicted: 2,
        ..FdbCounts::default()
    };
    assert_eq!(table.counts(), counts);
    table.clear_counts();
    assert_eq!(table.counts(), FdbCounts::default());
}

#[test]
fn view_of_a_worker_is_immutable() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    table.learn(address(1), PortNo(1), Instant::START);
    let view = table.view();
    assert!(table.flush() && !table.flush());
    assert!(view.find(address(1)).is_some() && table.view().find(address(1)).is_none());
}

#[test]
fn stations_are_ordered_by_activity_and_then_by_their_addition() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    for number in [3, 1, 2] {
        table.learn(address(number), PortNo(1), Instant::START);
    }
    let order = |table: &ForwardingDatabase| -> Vec<u64> {
        let view = table.view();
        let stations = view.by_activity().into_iter();
        stations.map(|(address, _)| address.mac.to_u64()).collect()
    };
    assert_eq!(order(&table), [3, 1, 2]);
    table.learn(address(3), PortNo(1), Instant::from_secs(9));
    assert_eq!(order(&table), [1, 2, 3]);
    // A move to another port is an addition.
    table.learn(address(1), PortNo(2), Instant::from_secs(9));
    assert_eq!(order(&table), [2, 3, 1]);
}

#[test]
fn new_port_takes_one_entry_from_each_of_several_ports() {
    let mut table = ForwardingDatabase::new(10, AGEING_TIME);
    let mut now = Instant::START;
    for number in 0..26_u32 {
        now += Duration::from_secs(1);
        let port = PortNo((number / 2 + 1).min(6));
        table.learn(address(number.into()), port, now);
    }
    let view = table.view();
    let left = |port| {
        let stations = view.iter();
        stations
            .filter(|(_, station)| station.port() == PortNo(port))
            .count()
    };
    // The ports that lose an entry are those of Open vSwitch.
    assert_eq!([1, 2, 3, 4, 5, 6].map(left), [1, 1, 2, 1, 2, 3]);
}

#[test]
fn forget_removes_learned_entries_only() {
    let mut table = ForwardingDatabase::new(4, AGEING_TIME);
    table.learn(address(1), PortNo(1), Instant::START);
    let added = table.add_static(address(2), PortNo(1), Instant::START);
    assert!(added.is_ok());
    let addresses = [1, 2, 3].map(address);
    assert!(table.forget(&addresses) && !table.forget(&addresses));
    assert_eq!(ports_of(&table), [(2, 1)]);
}
