//! Tests of the statistics of ports.

use flow::{PortStats, UNAVAILABLE};

use super::*;

fn stats(rig: &Rig, port: u32) -> PortStats {
    let all = rig.bridge.port_stats(PortNo(port), rig.now);
    all.expect("a port").pop().expect("its counters")
}

#[test]
fn virtual_port_has_no_counters_of_errors() {
    let mut rig = Rig::controlled();
    assert_eq!(stats(&rig, 1).rx_dropped, 0);
    rig.bridge.set_virtual(PortNo(1));
    let stats = stats(&rig, 1);
    let unknown = [
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
    ];
    assert_eq!(unknown, [UNAVAILABLE; 4]);
    assert_eq!((stats.rx_frame_errors, stats.rx_over_errors), (None, None));
    assert_eq!((stats.rx_packets, stats.tx_packets), (0, 0));
}

#[test]
fn dummy_has_counters_by_name() {
    let mut rig = Rig::controlled();
    let counters = vec![("rx_q0_packets".to_owned(), 7)];
    let read = counters.clone();
    rig.bridge
        .set_dummy(PortNo(1), Arc::new(move || read.clone()), rig.now);
    assert_eq!(stats(&rig, 1).custom, counters);
    assert!(stats(&rig, 2).custom.is_empty());
}
