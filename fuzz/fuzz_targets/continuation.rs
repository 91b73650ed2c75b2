//! See `testkit::fuzz::continuation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::continuation(data));
