//! Any bytes and any metadata as a frame: parsed, rewritten, completed, segmented.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::frame(data));
