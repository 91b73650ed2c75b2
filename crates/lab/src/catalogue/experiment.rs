//! An experiment: its description, its test setup, and the function that measures one point.

use controller::Application;
use record::{Description, Point};
use testbed::{DeviceKind, FailMode, Mode, Topology};

use crate::setup::{SetupRequest, TestSetup};
use crate::tools::Tools;
use crate::trial::{TrialError, TrialResult};

/// Experiment of the catalogue.
pub struct Experiment {
    /// Name, method in words, parameters, figures and views.
    pub description: Description,
    /// Test setup of a trial.
    pub(crate) setup: SetupKind,
    /// Returns true if the experiment applies to a device at a point.
    pub(crate) applies_to: fn(DeviceKind, &Point) -> bool,
    /// True if the experiment measures TCP, and so distinguishes devices that differ only in TCP
    /// offloads.
    pub(crate) measures_tcp: bool,
    /// True if the bare link is measured too, because the report draws the tester's own share.
    pub(crate) is_calibrated: bool,
    /// Programs that the hosts run.
    pub(crate) programs: &'static [HostProgram],
    /// Returns the approximate duration of a trial in seconds, for a forecast.
    pub(crate) seconds: fn(&Point) -> f64,
    /// Measures one point on the device of a test setup.
    pub(crate) measure: fn(&Point, &mut TestSetup, &Tools<'_>) -> Result<TrialResult, TrialError>,
}

/// Program that a host runs, and the Debian package that contains it.
pub(crate) type HostProgram = (&'static str, &'static str);

/// The program iperf3.
pub(crate) const IPERF3: HostProgram = ("iperf3", "iperf3");

impl Experiment {
    /// Experiment that is measured on the shared setup of every device, for the fields that an
    /// experiment leaves out.
    pub(crate) const BASE: Self = Self {
        description: Description::EMPTY,
        setup: SetupKind::Shared,
        applies_to: |_, _| true,
        measures_tcp: false,
        is_calibrated: false,
        programs: &[],
        seconds: |_| 1.0,
        measure: |_, _, _| Err(TrialError::Impossible(String::new())),
    };

    /// Returns the dedicated test setup of a trial, or `None` if the shared one suits it.
    pub(crate) fn dedicated_setup(&self, kind: DeviceKind, point: &Point) -> Option<SetupRequest> {
        let SetupKind::Dedicated(dedicated) = self.setup else {
            return None;
        };
        let topology = self.description.topology_at(point);
        dedicated(point).request(kind, topology)
    }
}

/// Test setup of a trial.
#[derive(Clone, Copy)]
pub(crate) enum SetupKind {
    /// The device between two hosts in its default mode, with a silent controller; in use for the
    /// whole run.
    Shared,
    /// A setup for one trial, as the function returns it for a point.
    Dedicated(fn(&Point) -> DedicatedSetup),
}

/// Test setup for one trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct DedicatedSetup {
    /// Forwarding mode; the default mode of the device if `None`.
    pub(crate) mode: Option<Mode>,
    /// Behaviour without a controller.
    pub(crate) fail_mode: FailMode,
    /// Application of the controllers.
    pub(crate) application: Application,
    /// True if the device may use all cores, those of the tester included.
    pub(crate) on_all_cores: bool,
    /// True if the device must be another process than the shared one, because the trial damages
    /// it.
    pub(crate) separate: bool,
}

impl DedicatedSetup {
    /// Returns the request of the setup, or `None` if it equals the shared setup.
    fn request(self, kind: DeviceKind, topology: Topology) -> Option<SetupRequest> {
        let Self {
            mode,
            fail_mode,
            application,
            on_all_cores,
            separate,
        } = self;
        let has_defaults = topology == Topology::default() && mode.is_none();
        let is_silent = application.is_silent() && fail_mode == FailMode::Secure;
        let is_shared = has_defaults && is_silent && !on_all_cores && !separate;
        (!is_shared).then_some(SetupRequest {
            kind,
            mode,
            fail_mode,
            topology,
            application,
            on_all_cores,
            separate,
        })
    }
}
