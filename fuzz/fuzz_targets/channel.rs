//! See `testkit::fuzz::openflow::channel`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::openflow::channel(data));
