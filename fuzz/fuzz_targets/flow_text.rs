//! Any text as flows, matches and actions.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::flow_text(data));
