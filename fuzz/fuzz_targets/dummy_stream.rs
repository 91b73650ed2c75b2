//! See `testkit::fuzz::dummy_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::dummy_stream(data));
