//! Tools of a measurement: the tester's clock, processes and cores, and the paths of the run.

use std::path::PathBuf;

use testbed::{Clock, Spawner};

use crate::Interrupt;
use crate::cores::Cores;

/// Tools that every experiment uses.
pub(crate) struct Tools<'a> {
    /// Clock of all times in records.
    pub(crate) clock: &'a Clock,
    /// Starter of processes.
    pub(crate) spawner: &'a Spawner,
    /// Cores of the tester and of the devices.
    pub(crate) cores: &'a Cores,
    /// Request of the user to stop.
    pub(crate) interrupt: &'a Interrupt,
    /// Files and programs of the run.
    pub(crate) paths: &'a Paths,
}

/// Files and programs of a run.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// Directory for records, logs and the report.
    pub(crate) directory: PathBuf,
    /// The program `comporta`, for the device of that name.
    pub(crate) comporta: PathBuf,
}
