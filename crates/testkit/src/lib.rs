//! What the tests of several crates share. A dev-dependency only: nothing here
//! ships.

pub mod fuzz;
pub mod pair;
