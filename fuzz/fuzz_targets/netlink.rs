//! See `sys::fuzzing::netlink`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sys::fuzzing::netlink(data));
