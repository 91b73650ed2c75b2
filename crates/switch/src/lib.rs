//! temp
pub mod config;
/// core
pub mod core { #![allow(missing_docs)] pub mod mac; pub mod link; }
pub mod error;
mod reconcile;
/// shell
#[allow(dead_code, reason = "t")]
pub mod shell { mod rundir; mod clock; }
