//! Results of a trial, or the reason why there are none.

use controller::ControllerError;
use record::{Conditions, Flaw, Reading};
use testbed::Failure;

use crate::probe::ProbeError;

/// Least share of steal time that is noted, and the least seconds of a core that it must amount
/// to: the kernel counts in hundredths of a second.
const STEAL_NOTED: (f64, f64) = (0.01, 0.03);
/// Least share of steal time that makes a trial void, and its least seconds.
const STEAL_VOID: (f64, f64) = (0.10, 0.10);

/// Least CPU pressure that is noted, and its least seconds: above it other programs than the lab
/// and its device run.
const PRESSURE_NOTED: (f64, f64) = (0.20, 0.03);

/// Results of a completed trial.
#[derive(Clone, Debug)]
pub(crate) struct TrialResult {
    /// Figures and samples.
    pub(crate) reading: Reading,
    /// Conditions of the machine and the device.
    pub(crate) conditions: Conditions,
    /// Flaws.
    pub(crate) flaws: Vec<Flaw>,
}

impl TrialResult {
    /// Returns the results with the flaws that follow from the conditions.
    pub(crate) fn new(reading: Reading, conditions: Conditions) -> Self {
        let mut flaws = Vec::new();
        let exceeds = |(share, seconds): (f64, f64)| {
            conditions.steal >= share && conditions.steal * conditions.seconds >= seconds
        };
        if exceeds(STEAL_NOTED) {
            let share = conditions.steal * 100.0;
            flaws.push(Flaw {
                void: exceeds(STEAL_VOID),
                reason: format!(
                    "steal time: the hypervisor gave {share:.1} % of the cores' time to others"
                ),
            });
        }
        let step_ns = conditions.realtime_step_ns.unwrap_or(0);
        if step_ns > testbed::MOVED_NS_MAX {
            // Measurements by the kernel's timestamps have a check of their own, which voids them.
            flaws.push(Flaw {
                void: false,
                reason: format!("CLOCK_REALTIME was set by {step_ns} ns during the trial"),
            });
        }
        Self {
            reading,
            conditions,
            flaws,
        }
    }

    /// Notes a high CPU pressure, which other programs cause. For trials whose threads have a core
    /// each: programs that share a core wait for each other.
    pub(crate) fn note_pressure(&mut self) {
        let (share, seconds) = PRESSURE_NOTED;
        let pressure = self.conditions.pressure.unwrap_or(0.0);
        if pressure >= share && pressure * self.conditions.seconds >= seconds {
            let percent = pressure * 100.0;
            self.note(format!(
                "CPU pressure of {percent:.0} %: other programs used the cores"
            ));
        }
    }

    /// Adds a flaw that makes the results void.
    pub(crate) fn void(&mut self, reason: String) {
        self.flaws.push(Flaw { void: true, reason });
    }

    /// Adds a note for readers.
    pub(crate) fn note(&mut self, reason: String) {
        self.flaws.push(Flaw {
            void: false,
            reason,
        });
    }
}

/// Reason for a trial without results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// It was not possible; the text says why.
    #[error("{0}")]
    Impossible(String),
}

impl From<Failure> for TrialError {
    fn from(failure: Failure) -> Self {
        Self::Impossible(failure.to_string())
    }
}

impl From<ControllerError> for TrialError {
    fn from(error: ControllerError) -> Self {
        Self::Impossible(error.to_string())
    }
}

impl From<ProbeError> for TrialError {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Interrupted => Self::Interrupted,
            other => Self::Impossible(other.to_string()),
        }
    }
}
