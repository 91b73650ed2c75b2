//! The bodies of the fuzz targets under `fuzz/`, as plain functions, so that
//! every file of the corpora also runs as an ordinary test (`tests/corpora.rs`).

pub mod openflow;
