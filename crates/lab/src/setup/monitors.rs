//! Monitors of a trial: path counters before and after it, and the SNMP agent of an external
//! switch during it. For a trial without results they find the cause, as far as possible.

use controller::Diagnosis;
use record::ManagementRecord;
use testbed::Failure;

use super::TestSetup;
use super::path_counters::PathSnapshot;
use crate::management::{Poller, agent_record};
use crate::tools::Tools;
use crate::trial::TrialResult;

/// Monitors of a trial.
pub(crate) struct Monitors {
    before: PathSnapshot,
    poller: Option<Poller>,
}

impl Monitors {
    /// Starts the monitors, before the trial.
    pub(crate) fn start(setup: &TestSetup, tools: &Tools<'_>) -> Result<Self, Failure> {
        let agent = setup
            .description()
            .and_then(|described| described.snmp.clone());
        let start = |agent| Poller::start(agent, tools.cores.monitors(), tools.clock);
        Ok(Self {
            poller: agent.map(start).transpose()?,
            before: PathSnapshot::read(setup)?,
        })
    }

    /// Stops the monitors, and adds their data and the flaws that they show to the results.
    pub(crate) fn stop(self, setup: &TestSetup, measured: &mut TrialResult) {
        if let Some(poller) = self.poller {
            let management = &mut measured.conditions.management;
            let management = management.get_or_insert_with(Box::<ManagementRecord>::default);
            management.agent = Some(agent_record(&poller.stop()));
        }
        let after = match PathSnapshot::read(setup) {
            Ok(after) => after,
            Err(failure) => {
                return measured.note(format!("path counters could not be read: {failure}"));
            }
        };
        let counters = after.since(self.before, setup);
        let disagreements = counters.disagreements();
        disagreements.into_iter().for_each(|one| measured.note(one));
        if let Some(reason) = &counters.port_stats_error {
            measured.note(format!("no port statistics of the device: {reason}"));
        }
        if counters.is_silent() {
            measured.note(format!(
                "almost no frame arrived ({}){}",
                counters.in_words(),
                setup.diagnosis()
            ));
        }
        measured.conditions.path_counters = Some(Box::new(counters));
    }

    /// Stops the monitors after a failed trial, and returns its reason with the path of its frames
    /// and the state of the device.
    pub(crate) fn explain(self, setup: &mut TestSetup, reason: &str) -> String {
        if let Err(failure) = setup.bench.device_mut().check() {
            return format!("the device ended during the trial: {failure}; then: {reason}");
        }
        // Some reasons contain the state of the connection already.
        let diagnosis = match Diagnosis::is_in(reason) {
            true => String::new(),
            false => setup.diagnosis(),
        };
        let counters = PathSnapshot::read(setup).map(|after| after.since(self.before, setup));
        match counters {
            Ok(counters) if counters.sent() > 0 => {
                format!("{reason}{diagnosis}; {}", counters.in_words())
            }
            _ => format!("{reason}{diagnosis}"),
        }
    }
}
