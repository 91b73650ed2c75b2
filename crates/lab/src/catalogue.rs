//! The catalogue of experiments. Each has a description like the method section of a paper, with
//! its parameters, figures and views.
//!
//! An experiment is a file below this one. The output of `comporta lab show`, the plan, the
//! records, the section of the report and the columns of an export are derived from its
//! description. A new experiment is a file and a line in [`EXPERIMENTS`].
//!
//! ```text
//! Experiment = Description (question, source, steps, parameters, figures, views)
//!            + measure(point, test setup) -> Reading
//! ```

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
mod offered;
mod plane;
mod robustness;
#[cfg(test)]
mod simulated;
mod stateful;
mod switching;
mod userspace;
mod whitebox;

use record::{Catalogue, Description};

pub use experiment::Experiment;
pub(crate) use experiment::{HostProgram, IPERF3};

/// Every experiment, in the order of reports.
pub const EXPERIMENTS: &[&Experiment] = &[
    &calibration::size::SIZE,
    &calibration::load::LOAD,
    &data_planes::match_types::ECHO,
    &data_planes::legacy::LEGACY,
    &data_planes::capacity::CAPACITY,
    &data_planes::rules::RULES,
    &data_planes::rewrite::REWRITE,
    &userspace::tcp_throughput::TCP_THROUGHPUT,
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
    &control::flow_table::FLOW_TABLE,
    &control::under_traffic::CHANGES,
    &robustness::flows::FLOWS,
    &robustness::storm::STORM,
    &robustness::masks::MASKS,
    &control::churn::CHURN,
    &robustness::controller_loss::CONTROLLER_LOSS,
    &robustness::link_flap::LINK_FLAP,
    &robustness::soak::SOAK,
    &robustness::forwarding_rate::FORWARDING_RATE,
    &robustness::meters::METERS,
    &robustness::tcp_requests::TCP_REQUESTS,
    &stateful::connection_rate::CONNECTION_RATE,
    &stateful::concurrent::CONCURRENT,
    &stateful::established_rate::ESTABLISHED_RATE,
    &stateful::first_packet::FIRST_PACKET,
    &stateful::throughput::FIREWALL_THROUGHPUT,
    &stateful::http::HTTP,
];

/// Descriptions of all experiments.
pub const CATALOGUE: Catalogue = Catalogue::new({
    const ALL: [&Description; EXPERIMENTS.len()] = {
        let mut all = [&EXPERIMENTS[0].description; EXPERIMENTS.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = &EXPERIMENTS[index].description;
            index += 1;
        }
        all
    };
    &ALL
});

/// Items that every experiment uses.
pub(crate) mod prelude {
    pub(crate) use super::experiment::{DedicatedSetup, Experiment, SetupKind};
    pub(crate) use crate::trial::{TrialError, TrialResult};
    pub(crate) use record::{
        Better, Bound, Description, Family, Figure, Focus, Headline, HeadlineFigure, Parameter,
        Point, Reading, Values, View,
    };
}

#[cfg(test)]
mod tests;
