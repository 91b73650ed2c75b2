//! See `testkit::fuzz::conntrack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::conntrack(data));
