//! See `runtime::fuzzing::unixctl`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| runtime::fuzzing::unixctl(data));
