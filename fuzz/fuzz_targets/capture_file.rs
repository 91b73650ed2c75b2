//! See `testkit::fuzz::capture_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::capture_file(data));
