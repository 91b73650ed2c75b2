//! Anything as what a database server sends.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::ovsdb(data));
