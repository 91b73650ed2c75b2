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

use record::{MatchSet, Parameters, Point};
use testbed::{Clock, Spawner};

use crate::catalogue::{Experiment, Family, Setting};
use crate::cores::Cores;
use crate::plan::Test;
use crate::station::companion::Companion;
use crate::station::{Request, Station};
use crate::trial::{Measured, TrialError};
use crate::{Interrupt, LabError, Options};

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

/// Does `test` at `station`.
pub(crate) fn measure(
    test: &Test,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    station.bench.device_mut().check()?;
    station.prepare(test.match_set())?;
    match test {
        Test::Catalogued(one, point) => catalogued(one.experiment(), point, station, tools),
        own => accompanied(station, tools, |station| by_itself(own, station, tools)),
    }
}

/// Does a test that has a form of its own.
fn by_itself(
    test: &Test,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    match test {
        Test::Catalogued(one, point) => (one.experiment().measure)(point, station, tools),
        Test::Echo {
            match_set,
            frame_bytes,
        } => echo::measure(*match_set, *frame_bytes, station, tools),
        Test::TcpThroughput => tcp_throughput::measure(station, tools),
        Test::TcpRequests => tcp_requests::measure(station, tools),
        Test::FlowTable => flow_table::measure(station, tools),
        Test::Meter(meter) => meters::measure(*meter, station, tools),
        Test::Change(change) => changes::measure(*change, station, tools),
        Test::ForwardingRate(offer) => forwarding_rate::measure(*offer, station, tools),
    }
}

/// Does a test with all that goes on beside it.
fn accompanied(
    station: &mut Station,
    tools: &Tools<'_>,
    test: impl FnOnce(&mut Station) -> Result<Measured, TrialError>,
) -> Result<Measured, TrialError> {
    let companion = Companion::begin(station, tools)?;
    let done = test(station).and_then(|measured| {
        station.bench.device_mut().check()?;
        Ok(measured)
    });
    match done {
        Ok(mut measured) => {
            companion.end(station, &mut measured);
            Ok(measured)
        }
        Err(TrialError::Interrupted) => Err(TrialError::Interrupted),
        Err(TrialError::Impossible(reason)) => {
            let told = companion.explain(station, &reason);
            Err(TrialError::Impossible(told))
        }
    }
}

/// Notes frames that went up to a controller where rules were to carry all of them.
fn note_packet_ins(experiment: &Experiment, measured: &mut Measured) {
    let carries = match experiment.description.family {
        Family::DataPlanes | Family::LatencyAndLoss | Family::Whitebox | Family::Benchmarking => {
            true
        }
        Family::Calibration | Family::UserspaceSwitch | Family::Oflops | Family::Robustness => {
            false
        }
    };
    let passage = measured.conditions.passage.as_ref();
    let sent = passage.and_then(|passage| passage.packet_ins).unwrap_or(0);
    // What is void for it has been told.
    if carries && sent > 0 && !measured.flaws.iter().any(|flaw| flaw.void) {
        measured.note(format!(
            "the device sent {sent} frames to its controller during the test"
        ));
    }
}

/// An experiment of the catalogue, where it wants the device to stand.
fn catalogued(
    experiment: &Experiment,
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let at_station = |station: &mut Station| {
        let test = |station: &mut Station| (experiment.measure)(point, station, tools);
        let mut measured = accompanied(station, tools, test)?;
        note_packet_ins(experiment, &mut measured);
        Ok(measured)
    };
    let own = match experiment.setting {
        Setting::Usual => return at_station(station),
        Setting::Own(own) => own(point),
    };
    let topology = experiment.description.topology_at(point);
    if own.is_usual(topology) {
        return at_station(station);
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
        topology,
        application: own.application,
        apart: own.apart,
    };
    let impossible = |error: LabError| TrialError::Impossible(error.to_string());
    let built = Station::build_as(request, tools.options, &cores, tools.spawner, tools.clock);
    let mut station = built.map_err(impossible)?;
    if silent {
        station.prepare(MatchSet::Port)?;
    }
    at_station(&mut station)
}
