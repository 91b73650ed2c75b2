//! What the tests of several crates share. Never a part of what ships: other
//! crates name it as a dev-dependency only.

pub mod case;
pub mod channel_pair;
pub mod document;
pub mod fuzz;
pub mod workload;
