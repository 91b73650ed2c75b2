//! See `testkit::fuzz::multicast`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::multicast(data));
