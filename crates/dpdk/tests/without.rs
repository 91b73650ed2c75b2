//! The behaviour of builds without DPDK.
#![cfg(not(feature = "dpdk"))]

use std::num::NonZeroUsize;

#[test]
fn without_dpdk_a_device_is_refused_in_a_sentence() {
    let arguments = "net_null0,no-rx=1".parse().unwrap();
    let refused = dpdk::open(&arguments, NonZeroUsize::MIN).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "net_null0: this program was built without DPDK: install libdpdk-dev, and build it with \
         `cargo build --release --features dpdk`"
    );
}
