//! See `testkit::fuzz::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::configuration(data));
