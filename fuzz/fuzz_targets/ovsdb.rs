//! Any bytes as messages of a database server.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::ovsdb(data));
