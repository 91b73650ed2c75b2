//! Sequences of commands, as they are, as bytes and as text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::commands(data));
