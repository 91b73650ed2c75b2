//! What goes on beside every test: counters are read before it and after it, a switch of the
//! user's is asked by SNMP meanwhile; and if nothing came of it, why, as far as can be told.

use controller::Diagnosis;
use record::ManagementRecord;
use testbed::Failure;

use super::Station;
use super::passage::Passage;
use crate::management::{Poller, agent_record};
use crate::scenario::Tools;
use crate::trial::Measured;

/// A test's companion.
pub(crate) struct Companion {
    before: Passage,
    poller: Option<Poller>,
}

impl Companion {
    /// Begins, before the test does.
    pub(crate) fn begin(station: &Station, tools: &Tools<'_>) -> Result<Self, Failure> {
        let agent = station
            .description()
            .and_then(|described| described.snmp.clone());
        let start = |agent| Poller::start(agent, tools.cores.beside(), tools.clock);
        Ok(Self {
            poller: agent.map(start).transpose()?,
            before: Passage::read(station)?,
        })
    }

    /// Ends, and adds what there was to see to what was measured, with what speaks against it.
    pub(crate) fn end(self, station: &Station, measured: &mut Measured) {
        if let Some(poller) = self.poller {
            let management = &mut measured.conditions.management;
            let management = management.get_or_insert_with(Box::<ManagementRecord>::default);
            management.agent = Some(agent_record(&poller.stop()));
        }
        let after = match Passage::read(station) {
            Ok(after) => after,
            Err(failure) => return measured.note(format!("counters were not read: {failure}")),
        };
        let passage = after.since(self.before, station);
        let disagreements = passage.disagreements();
        disagreements.into_iter().for_each(|one| measured.note(one));
        if let Some(reason) = &passage.untold {
            measured.note(format!("the device's ports told nothing: {reason}"));
        }
        if passage.is_silent() {
            measured.note(format!(
                "next to nothing came out ({}){}",
                passage.in_words(),
                station.diagnosis()
            ));
        }
        measured.conditions.passage = Some(Box::new(passage));
    }

    /// Ends after a test that could not be done: says how far its frames went, and how the device
    /// is.
    pub(crate) fn explain(self, station: &mut Station, reason: &str) -> String {
        if let Err(failure) = station.bench.device_mut().check() {
            return format!("the device ended in mid-trial: {failure}; then: {reason}");
        }
        // Who has said already how its connection is.
        let diagnosis = match Diagnosis::is_in(reason) {
            true => String::new(),
            false => station.diagnosis(),
        };
        let way = Passage::read(station).map(|after| after.since(self.before, station));
        match way {
            Ok(way) if way.sent() > 0 => format!("{reason}{diagnosis}; {}", way.in_words()),
            _ => format!("{reason}{diagnosis}"),
        }
    }
}
