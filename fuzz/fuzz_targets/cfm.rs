//! Any bytes as a frame with a continuity check message.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::cfm(data));
