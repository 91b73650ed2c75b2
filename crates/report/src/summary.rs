//! A trial in a line, for people who watch.

use record::{
    Catalogue, ChangeOutcome, EchoOutcome, FlowTableOutcome, MeterOutcome, Outcome, RateOutcome,
    Reading, TcpOutcome, Trial,
};
use stats::Distribution;

use crate::format::{count, decimal, decimals, micros, rate, throughput};

/// Figures in a line at most.
const FIGURES_TOLD: usize = 4;

/// What came of `trial`, and what is wrong with it.
#[must_use]
pub fn line(trial: &Trial, catalogue: Catalogue) -> String {
    let outcome = match &trial.outcome {
        None => "not done".to_owned(),
        Some(Outcome::Echo(echo)) => echo_line(echo),
        Some(Outcome::TcpThroughput(tcp)) => tcp_line(tcp, trial),
        Some(Outcome::ForwardingRate(rate)) => rate_line(rate),
        Some(Outcome::FlowTable(table)) => table_line(table),
        Some(Outcome::Meter(meter)) => meter_line(meter),
        Some(Outcome::Change(change)) => change_line(change),
        Some(Outcome::Requests(requests)) => {
            format!("{} requests/s answered", decimal(requests.rate(), 0))
        }
        Some(Outcome::Reading(reading)) => reading_line(reading, trial, catalogue),
    };
    let flaws: String = trial
        .flaws
        .iter()
        .map(|flaw| {
            let mark = if flaw.void { "void" } else { "note" };
            format!("\n    {mark}: {}", flaw.reason)
        })
        .collect();
    format!("{}: {outcome}{flaws}", trial.id)
}

/// The figures that the experiment declares first, and how many have no value.
fn reading_line(reading: &Reading, trial: &Trial, catalogue: Catalogue) -> String {
    let Some(experiment) = catalogue.find(trial.experiment.as_str()) else {
        return "figures of another experiment".to_owned();
    };
    let figures = experiment.figures.iter();
    let told = figures.filter_map(|figure| {
        let value = *reading.figures.get(figure.name)?;
        let number = decimal(value, decimals(value));
        Some(
            format!("{} {number} {}", figure.title, figure.unit)
                .trim_end()
                .to_owned(),
        )
    });
    let mut told: Vec<String> = told.take(FIGURES_TOLD).collect();
    if let Some(reason) = reading.absent.values().next() {
        told.push(format!(
            "{} without a value: {reason}",
            reading.absent.len()
        ));
    }
    told.join(", ")
}

fn echo_line(echo: &EchoOutcome) -> String {
    let returned = echo.round_trip_ns.iter().flatten().copied();
    match Distribution::new(returned) {
        None => "nothing came back".to_owned(),
        Some(all) => format!(
            "mean {} µs, p50 {} µs, p99 {} µs, {} lost",
            micros(all.mean()),
            micros(all.quantile(500).into()),
            micros(all.quantile(990).into()),
            echo.round_trip_ns.len() - all.count(),
        ),
    }
}

fn tcp_line(tcp: &TcpOutcome, trial: &Trial) -> String {
    let process = trial.conditions.as_ref().and_then(|conditions| {
        let used = conditions.process?;
        let share = (used.user_seconds + used.system_seconds) / conditions.seconds;
        Some(format!(", device at {:.0} % of a core", share * 100.0))
    });
    format!(
        "{}, {} segments sent again{}",
        throughput(tcp.bits_per_second),
        count(tcp.retransmits),
        process.unwrap_or_default()
    )
}

fn rate_line(outcome: &RateOutcome) -> String {
    format!(
        "{} offered, {} came out ({} lost)",
        rate(outcome.offered_pps()),
        rate(outcome.received_pps()),
        count(outcome.lost())
    )
}

fn table_line(outcome: &FlowTableOutcome) -> String {
    let thousands = |rate: f64| decimal(rate / 1e3, 0);
    format!(
        "{} flows: {} thousand/s ({} at first, {} at last) into {} MB, \
         told in {} s (echo {} ms at most), deleted in {} s",
        count(outcome.flows.into()),
        thousands(outcome.rate()),
        thousands(outcome.first_rate()),
        thousands(outcome.last_rate()),
        decimal(outcome.full_bytes as f64 / 1e6, 0),
        decimal(outcome.tell_seconds, 2),
        decimal(outcome.echo_ns_max as f64 / 1e6, 1),
        decimal(outcome.delete_seconds, 2),
    )
}

fn meter_line(outcome: &MeterOutcome) -> String {
    format!(
        "{} passed of {} that were to, the worst second {} % off",
        rate(outcome.passed_pps()),
        rate(outcome.nominal_pps.into()),
        decimal(outcome.worst_error() * 100.0, 2),
    )
}

fn change_line(outcome: &ChangeOutcome) -> String {
    let effect = Distribution::new(outcome.effect_ns.iter().copied());
    let effect = effect.map(|all| {
        format!(
            ", changes met after {} µs (p99 {} µs)",
            micros(all.quantile(500).into()),
            micros(all.quantile(990).into())
        )
    });
    format!(
        "{} of {} frames lost, p99.9 {} µs, {} flow-mods/s, {} dumps{}",
        count(outcome.lost()),
        count(outcome.sent),
        micros(outcome.delay_ns_p999.into()),
        decimal(outcome.changes_a_second(), 0),
        outcome.dumps,
        effect.unwrap_or_default(),
    )
}
