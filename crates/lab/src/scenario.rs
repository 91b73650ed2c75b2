//! The experiments: offer load to one device at its station, see what comes of it,
//! and doubt it.
//!
//! Not here: in which order, and where the outcome goes.

mod changes;
mod echo;
mod flow_table;
mod forwarding_rate;
mod meters;
mod tcp_requests;
pub(crate) mod tcp_throughput;

use testbed::{Clock, Spawner};

use crate::catalogue::{Experiment, Setting};
use crate::cores::Cores;
use crate::plan::Test;
use crate::station::{Request, Station};
use crate::trial::{Measured, TrialError};
use crate::{Interrupt, LabError, MatchSet, Options, Parameters, Point};

/// What every experiment needs.
pub(crate) struct Tools<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) spawner: &'a Spawner,
    pub(crate) cores: &'a Cores,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) parameters: &'a Parameters,
    /// The whole run's, for who sets up a device of his own.
    pub(crate) options: &'a Options,
}

/// Does `test` at `station`, unless its device has failed too often.
pub(crate) fn measure(
    test: &Test,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let scenario = test.scenario();
    if station.is_given_up(scenario) {
        let reason =
            "given up: three tests of this experiment in a row could not be done on this device";
        return Err(TrialError::Impossible(reason.to_owned()));
    }
    let outcome = attempt(test, station, tools);
    station.note(scenario, outcome.is_ok());
    outcome
}

fn attempt(test: &Test, station: &mut Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    station.bench.device_mut().check()?;
    station.prepare(test.match_set())?;
    let measured = match test {
        Test::Catalogued(one, point) => catalogued(one.experiment(), point, station, tools)?,
        Test::Echo {
            match_set,
            frame_bytes,
        } => echo::measure(*match_set, *frame_bytes, station, tools)?,
        Test::TcpThroughput => tcp_throughput::measure(station, tools)?,
        Test::TcpRequests => tcp_requests::measure(station, tools)?,
        Test::FlowTable => flow_table::measure(station, tools)?,
        Test::Meter(meter) => meters::measure(*meter, station, tools)?,
        Test::Change(change) => changes::measure(*change, station, tools)?,
        Test::ForwardingRate(offer) => forwarding_rate::measure(*offer, station, tools)?,
    };
    station.bench.device_mut().check()?;
    Ok(measured)
}

/// An experiment of the catalogue, where it wants the device to stand.
fn catalogued(
    experiment: &Experiment,
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let own = match experiment.setting {
        Setting::Usual => return (experiment.measure)(point, station, tools),
        Setting::Own(own) => own(point),
    };
    if own.is_usual() {
        return (experiment.measure)(point, station, tools);
    }
    let mut cores = tools.cores.clone();
    if own.on_all_cores {
        cores.device.extend(&tools.cores.tester);
    }
    let silent = own.application.is_silent();
    let request = Request {
        kind: station.kind(),
        mode: own.mode,
        fail_mode: own.fail_mode,
        topology: own.topology,
        application: own.application,
    };
    let impossible = |error: LabError| TrialError::Impossible(error.to_string());
    let built = Station::build_as(request, tools.options, &cores, tools.spawner, tools.clock);
    let mut station = built.map_err(impossible)?;
    if silent {
        station.prepare(MatchSet::Port)?;
    }
    (experiment.measure)(point, &mut station, tools)
}
