//! See `testkit::fuzz::openflow::print`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::openflow::print(data));
