//! Sequences of commands, applied directly, as bytes and as text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::commands(data));
