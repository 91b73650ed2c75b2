//! What a scenario hands back, and why it may hand back nothing.

use controller::ControllerError;
use record::{Conditions, Flaw, Outcome};
use testbed::Failure;

use crate::probe::ProbeError;

/// A share of stolen time from which on a reader should know of it, and the seconds
/// of a core that must be behind it: the kernel counts in hundredths.
const STEAL_NOTED: (f64, f64) = (0.01, 0.03);
/// The same, for nothing to be learnt any more.
const STEAL_VOID: (f64, f64) = (0.10, 0.10);

/// A share of the time in which something had to wait for a core, from which on
/// others than the lab and its device must have been at work, and the seconds that
/// must be behind it.
const PRESSURE_NOTED: (f64, f64) = (0.20, 0.03);

/// A test that was done.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// How the machine fared meanwhile.
    pub(crate) conditions: Conditions,
    /// What is wrong with it.
    pub(crate) flaws: Vec<Flaw>,
}

impl Measured {
    /// The outcome, with what the conditions say against it.
    pub(crate) fn new(outcome: Outcome, conditions: Conditions) -> Self {
        let mut flaws = Vec::new();
        let exceeds = |(share, seconds): (f64, f64)| {
            conditions.steal >= share && conditions.steal * conditions.seconds >= seconds
        };
        if exceeds(STEAL_NOTED) {
            let share = conditions.steal * 100.0;
            flaws.push(Flaw {
                void: exceeds(STEAL_VOID),
                reason: format!("the hypervisor gave {share:.1} % of the cores' time to others"),
            });
        }
        let step_ns = conditions.realtime_step_ns.unwrap_or(0);
        if step_ns > testbed::MOVED_NS_MAX {
            // What was measured by the kernel's stamps is void by its own check.
            flaws.push(Flaw {
                void: false,
                reason: format!("something set CLOCK_REALTIME by {step_ns} ns meanwhile"),
            });
        }
        Self {
            outcome,
            conditions,
            flaws,
        }
    }

    /// Notes that others wanted the cores, if they did. For tests whose own threads
    /// have a core each: programs that share one wait for each other.
    pub(crate) fn note_pressure(&mut self) {
        let (share, seconds) = PRESSURE_NOTED;
        let pressure = self.conditions.pressure.unwrap_or(0.0);
        if pressure >= share && pressure * self.conditions.seconds >= seconds {
            let percent = pressure * 100.0;
            self.note(format!(
                "other programs were at work: for {percent:.0} % of the time something waited for a core"
            ));
        }
    }

    /// Adds something that makes the outcome worthless.
    pub(crate) fn void(&mut self, reason: String) {
        self.flaws.push(Flaw { void: true, reason });
    }

    /// Adds something that a reader should know.
    pub(crate) fn note(&mut self, reason: String) {
        self.flaws.push(Flaw {
            void: false,
            reason,
        });
    }
}

/// A test that could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    /// The user wants no more.
    #[error("interrupted")]
    Interrupted,
    /// It was not possible.
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
