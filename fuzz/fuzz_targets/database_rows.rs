//! See `vswitchd::fuzzing::database_rows`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vswitchd::fuzzing::database_rows(data));
