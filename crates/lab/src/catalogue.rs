//! The catalogue: experiments, each described as a paper's method section would, with
//! what it varies, what comes out, and how that is best looked at.
//!
//! An experiment is a file under this one. From its description everything else is made:
//! what `comporta lab show` tells, the plan, the records, the section of the report, the
//! columns of an export. Adding one is adding a file and a line in [`EXPERIMENTS`].

mod benchmarking;
mod bisection;
mod calibration;
mod control;
mod data_planes;
mod experiment;
mod frames;
mod in_force;
mod latency;
mod lines;
#[cfg(test)]
mod memory;
mod offered;
mod plane;
mod robustness;
mod switching;
mod userspace;
mod whitebox;

use std::fmt;

pub use experiment::Experiment;
pub(crate) use experiment::{Own, Setting};
pub(crate) use record::{
    Better, Bound, Description, Family, Figure, Parameter, Point, Role, Values, View,
};
use record::{Catalogue, own};

/// Every experiment of the catalogue, in the order of reports.
pub const EXPERIMENTS: &[&Experiment] = &[
    &calibration::size::SIZE,
    &calibration::load::LOAD,
    &data_planes::legacy::LEGACY,
    &data_planes::capacity::CAPACITY,
    &data_planes::rules::RULES,
    &data_planes::rewrite::REWRITE,
    &userspace::vlan_ports::VLAN_PORTS,
    &userspace::learning::LEARNING,
    &userspace::chain::CHAIN,
    &latency::size::SIZE,
    &latency::load::LOAD,
    &latency::action::ACTION,
    &frames::mtu::MTU,
    &whitebox::bridges::BRIDGES,
    &frames::kinds::KINDS,
    &frames::tags::TAGS,
    &frames::icmp::ICMP,
    &benchmarking::throughput::THROUGHPUT,
    &benchmarking::loss::LOSS,
    &benchmarking::back_to_back::BACK_TO_BACK,
    &benchmarking::recovery::RECOVERY,
    &benchmarking::reset::RESET,
    &switching::meshed::MESHED,
    &switching::congestion::CONGESTION,
    &switching::address_caching::ADDRESS_CACHING,
    &switching::learning_rate::LEARNING_RATE,
    &switching::broadcast::BROADCAST,
    &control::control_echo::CONTROL_ECHO,
    &control::add_flow::ADD_FLOW,
    &control::add_flow::MOD_FLOW,
    &control::barrier_truth::BARRIER_TRUTH,
    &control::consistency::CONSISTENCY,
    &control::update_rate::UPDATE_RATE,
    &control::statistics::FLOW_STATS,
    &control::statistics::AGGREGATE_STATS,
    &control::interaction::INTERACTION,
    &control::port_stats::PORT_STATS,
    &control::port_status::PORT_STATUS,
    &control::tuple_matrix::TUPLE_MATRIX,
    &control::packet_in::PACKET_IN,
    &control::packet_out::PACKET_OUT,
    &control::reactive::REACTIVE,
    &control::timers::TIMERS,
    &robustness::flows::FLOWS,
    &robustness::storm::STORM,
    &robustness::masks::MASKS,
    &control::churn::CHURN,
    &robustness::controller_loss::CONTROLLER_LOSS,
    &robustness::link_flap::LINK_FLAP,
    &robustness::soak::SOAK,
];

/// How many experiments have descriptions.
const DESCRIBED: usize = own::DESCRIPTIONS.len() + EXPERIMENTS.len();

/// Descriptions of all experiments.
pub const CATALOGUE: Catalogue = Catalogue::new({
    const ALL: [&Description; DESCRIBED] = {
        let mut all = [&own::DESCRIPTIONS[0]; DESCRIBED];
        let mut place = 0;
        while place < DESCRIBED {
            all[place] = match place.checked_sub(own::DESCRIPTIONS.len()) {
                None => &own::DESCRIPTIONS[place],
                Some(place) => &EXPERIMENTS[place].description,
            };
            place += 1;
        }
        all
    };
    &ALL
});

/// An experiment of the catalogue, by its place there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Catalogued(usize);

impl Catalogued {
    /// Every experiment, in the catalogue's order.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (0..EXPERIMENTS.len()).map(Self)
    }

    /// The experiment itself.
    #[must_use]
    pub const fn experiment(self) -> &'static Experiment {
        EXPERIMENTS[self.0]
    }

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.experiment().description.name
    }
}

impl fmt::Debug for Catalogued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
