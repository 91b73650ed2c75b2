//! What the tests of several crates share. Never a part of what ships: other
//! crates name it as a dev-dependency only.

pub mod bed;
pub mod case;
pub mod document;
pub mod fuzz;
pub mod pair;
