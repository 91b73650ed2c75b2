//! Test code that several crates share. No product contains it: other crates use it only as a
//! dev-dependency.

pub mod case;
pub mod channel_pair;
pub mod document;
pub mod fuzz;
pub mod oracle;
pub mod workload;
