//! Frames of in-band control: arbitrary bytes. Counting a frame does not depend on its treatment.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, LazyLock};

use base::{Instant, PortNo};
use dataplane::in_band::{InBand, InBandConfig};
use packet::MacAddr;

/// The rules of a bridge with two controllers.
static RULES: LazyLock<Option<Arc<InBand>>> = LazyLock::new(|| {
    let remote = |last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 6653);
    let config = InBandConfig {
        local: MacAddr([2, 0, 0, 0, 0, 1]),
        next_hops: vec![MacAddr([2, 0, 0, 0, 0, 2])],
        remotes: vec![remote(1), remote(2)],
        queue: None,
    };
    InBand::compile(config, None, Instant::START)
});

/// Classifies `data` without its first byte, which selects the ingress port.
///
/// # Panics
/// If there are no rules.
pub fn in_band(data: &[u8]) {
    let Some((from, frame)) = data.split_first() else {
        return;
    };
    let from = match from % 2 {
        0 => PortNo::LOCAL,
        _ => PortNo(1),
    };
    let rules = RULES.as_ref().expect("there are controllers");
    let _ = rules.path(from, frame);
    rules.count(from, frame);
}
