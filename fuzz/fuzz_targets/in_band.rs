//! See `testkit::fuzz::in_band`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::in_band(data));
