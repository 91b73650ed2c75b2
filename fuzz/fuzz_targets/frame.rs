//! Any bytes and any metadata as a frame: read, rewritten, finished, cut.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::frame(data));
