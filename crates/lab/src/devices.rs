//! Devices under test, as a user sees them.

#[cfg(test)]
pub(crate) mod tests;
