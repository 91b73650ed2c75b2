//! The behaviour of builds without DPDK.
#![cfg(not(feature = "dpdk"))]

use std::num::NonZeroUsize;

#[test]
fn build_without_dpdk_refuses_devices_with_instructions() {
    let arguments = "net_null0,no-rx=1".parse().unwrap();
    let refused = dpdk::open(&arguments, NonZeroUsize::MIN).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "net_null0: this program was built without DPDK: install libdpdk-dev, and build it with \
         `cargo build --release --features dpdk`"
    );
}
