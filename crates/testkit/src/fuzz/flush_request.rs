//! The fuzz target of requests to flush connections, as text.

use std::sync::LazyLock;

use base::Instant;
use conntrack::{Conntrack, HashSeed};
use openflow::ConntrackFlush;
use switch::connection_filter::{ConnectionFilter, parse_request};

/// A tracker without connections.
static TRACKER: LazyLock<Conntrack> = LazyLock::new(|| Conntrack::new(HashSeed([1, 2]), 1));

/// The longest text, which keeps a run short.
const TEXT_MAX: usize = 4096;

/// Parses the lines of a text as the arguments of `dpctl/flush-conntrack`, and selects connections.
pub fn flush_request(data: &[u8]) {
    let Some(text) = std::str::from_utf8(data)
        .ok()
        .filter(|text| text.len() <= TEXT_MAX)
    else {
        return;
    };
    let words: Vec<_> = text.lines().collect();
    let Ok(request) = parse_request(&words) else {
        return;
    };
    let filter = ConnectionFilter::new(&request);
    let without_tuples = ConntrackFlush {
        zone: request.zone,
        ..ConntrackFlush::default()
    };
    assert_eq!(filter.is_without_tuples(), request == without_tuples);
    assert_eq!(filter.flush(&TRACKER, Instant::START).unwrap_or(0), 0);
}
