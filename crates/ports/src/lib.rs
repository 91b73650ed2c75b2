//! Network devices as the data plane sees them: one trait, many backends.
//!
//! A backend moves frames and what they owe to the wire. It never looks inside a
//! frame, never blocks, and never drops in silence.
