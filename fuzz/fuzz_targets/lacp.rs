//! Any bytes as a frame of the partner of a bond.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::lacp(data));
