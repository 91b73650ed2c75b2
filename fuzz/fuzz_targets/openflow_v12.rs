//! See `testkit::fuzz::openflow::openflow_v12`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::openflow::openflow_v12(data));
