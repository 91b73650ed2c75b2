//! Meters (OF 1.3.5, 5.7): token buckets, and the table that holds them.

pub(crate) mod meter;
pub(crate) mod meter_table;

pub(crate) use meter::Meter;
pub use meter::{MeterDecision, raise_drop_precedence};
pub(crate) use meter_table::MeterTable;
