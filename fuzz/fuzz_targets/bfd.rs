//! Any bytes as a frame with a BFD control packet.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::bfd(data));
