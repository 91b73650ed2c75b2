//! Fuzz functions: one for each edge where foreign bytes come in. Each takes
//! anything, and panics only if a promise is broken. The fuzzer's targets call
//! them, and so do plain tests, with the corpora in `fuzz/corpus`.

mod flow_text;
mod frame;

pub use flow_text::flow_text;
pub use frame::frame;
