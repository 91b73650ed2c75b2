//! Anything as what the other end of a bond sends.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::lacp(data));
