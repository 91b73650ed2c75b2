//! See `testkit::fuzz::flush_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::flush_request(data));
