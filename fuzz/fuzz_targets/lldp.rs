//! Any bytes as an LLDP frame.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::lldp(data));
