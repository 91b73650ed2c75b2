//! See `testkit::fuzz::openflow::openflow_v11`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::openflow::openflow_v11(data));
