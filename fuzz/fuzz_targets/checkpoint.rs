//! Any bytes as the checkpoint of a switch's tables.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::checkpoint(data));
