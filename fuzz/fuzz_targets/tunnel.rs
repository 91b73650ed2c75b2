//! See `testkit::fuzz::tunnel`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::tunnel(data));
