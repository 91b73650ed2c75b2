//! An experiment: its description and the function that measures it.

use controller::Application;
use record::{Description, Point};
use testbed::{DeviceKind, FailMode, Mode, Topology};

use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// An experiment: its description and how it is done.
pub struct Experiment {
    /// Name, method in words, parameters, figures and views.
    pub description: Description,
    /// Where the device stands.
    pub(crate) setting: Setting,
    /// Which devices it makes sense on, at which points.
    pub(crate) takes: fn(DeviceKind, &Point) -> bool,
    /// About how many seconds a test takes, for a forecast.
    pub(crate) seconds: fn(&Point) -> f64,
    /// Does it once, at one point, on the device of a station.
    pub(crate) measure: fn(&Point, &mut Station, &Tools<'_>) -> Result<Measured, TrialError>,
}

/// Where the device of a test stands.
#[derive(Clone, Copy)]
pub(crate) enum Setting {
    /// Between two hosts in its usual mode, under a controller that does nothing by itself: up
    /// for the whole run.
    Usual,
    /// As said for each point, made for the one test.
    Own(fn(&Point) -> Own),
}

/// A place that is made for one test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// How the device decides where frames go; in its usual way, if none is said.
    pub(crate) mode: Option<Mode>,
    /// What it does while its controllers are gone.
    pub(crate) fail_mode: FailMode,
    /// What its controllers do by themselves.
    pub(crate) application: Application,
    /// Whether it may run on all cores, the tester's too.
    pub(crate) on_all_cores: bool,
    /// Whether it must be another than that for the whole run, even if it is alike: what is done
    /// to it is not to be done to that one.
    pub(crate) apart: bool,
}

impl Own {
    /// Whether it is no other than that for the whole run.
    pub(crate) fn is_usual(&self, topology: Topology) -> bool {
        let alike = topology == Topology::default() && self.mode.is_none();
        let by_rules = self.application.is_silent() && self.fail_mode == FailMode::Secure;
        alike && by_rules && !self.on_all_cores && !self.apart
    }
}
