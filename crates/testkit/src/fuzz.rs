<<<<<<< HEAD
//! Fuzz functions: one for each edge where foreign bytes come in. Each takes
//! anything, and panics only if a promise is broken. The fuzzer's targets call
//! them, and so do plain tests, with the corpora in `fuzz/corpus`.

mod flow_text;

pub use flow_text::flow_text;
=======
//! The bodies of the fuzz targets under `fuzz/`, as plain functions, so that
//! every file of the corpora also runs as an ordinary test (`tests/corpora.rs`).

pub mod openflow;
>>>>>>> openflow
