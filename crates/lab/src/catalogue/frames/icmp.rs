//! Pings between the hosts' network stacks, with payloads of up to dozens of fragments.

use std::time::Duration;

use testbed::Program;

use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const ICMP: Experiment = Experiment {
    description: Description {
        name: "icmp",
        title: "ICMP echo with large payloads",
        family: Family::Whitebox,
        question: "What are the round trip and the loss of pings with large payloads, and which resources does the device use?",
        source: "vSDNBox, section 2: Manggala et al., ICMP with payloads of 100 to 51,200 bytes",
        steps: &[
            "The client pings the server with the ping of iputils at equal gaps; the hosts' stacks reply.",
            "Payloads above the MTU are fragmented in both directions: a rule that matches the ingress port forwards all fragments, and a ping is lost with one of them.",
            "The figures are the round trips that ping measures, the hosts' stacks included, and the processor time and memory of the device's process.",
        ],
        parameters: &[
            Parameter::axis(
                "payload",
                "payload in bytes, after the ICMP header",
                Values::numbers(
                    &[51_200],
                    &[100, 500, 1_472, 1_473, 5_000, 10_000, 25_600, 51_200],
                    &[100, 500, 1_472, 1_473, 5_000, 10_000, 25_600, 51_200],
                    [16, 65_507],
                ),
            ),
            Parameter::constant(
                "pings",
                "pings, one each gap",
                Values::numbers(&[50], &[5_000], &[30_000], [1, 1_000_000]),
            ),
            Parameter::constant(
                "gap-millis",
                "milliseconds between two pings",
                Values::numbers(&[2], &[2], &[2], [1, 1_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Mean round trip by payload",
                figure: "mean_us",
                along: "payload",
                log: false,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "answered",
                    "lost_percent",
                    "least_us",
                    "mean_us",
                    "most_us",
                    "deviation_us",
                    "mbit",
                    "processor_percent",
                    "memory_mb",
                ],
            },
        ],
        ..Description::EMPTY
    },
    seconds: |point| 0.2 + length(point).as_secs_f64(),
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("answered", "Answered", "pings", Better::Higher),
    figure("lost_percent", "Not answered", "%", Better::Lower),
    figure("least_us", "Minimum", "µs", Better::Lower),
    figure("mean_us", "Mean", "µs", Better::Lower),
    figure("most_us", "Maximum", "µs", Better::Lower),
    figure("deviation_us", "Standard deviation", "µs", Better::Lower),
    figure("mbit", "Payload per direction", "Mbit/s", Better::Neither),
    figure("processor_percent", "Processor time", "%", Better::Lower),
    figure("memory_mb", "Memory", "MB", Better::Lower),
];

/// Time limit for the last reply.
const TIMEOUT: Duration = Duration::from_secs(5);

fn length(point: &Point) -> Duration {
    Duration::from_millis(point.number("pings") * point.number("gap-millis"))
}

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let bench = &setup.bench;
    let gap = Duration::from_millis(point.number("gap-millis"));
    let (pings, payload) = (point.number("pings"), point.number("payload"));
    let output = setup.directory.join("icmp.txt");
    let program = Program::new("ping")
        .args(["-n", "-q", "-W", "1", "-i", &gap.as_secs_f64().to_string()])
        .args(["-s", &payload.to_string(), "-c", &pings.to_string()])
        .arg(bench.server().address.to_string())
        .output(&output)
        .log(setup.directory.join("icmp.log"))
        .on_cores(&tools.cores.tester)
        .inside(&bench.client().namespace);
    let watch = ConditionMonitor::begin(bench, tools.cores, tools.clock)?;
    let began = tools.clock.now();
    let mut process = tools.spawner.start(program)?;
    // The program fails if no reply arrives, which is a result.
    let status = process.wait(length(point) * 3 + TIMEOUT)?;
    let seconds = tools.clock.now().since(began).as_secs_f64();
    let conditions = watch.end(bench)?;
    let text = process.written()?;
    let Some(summary) = PingSummary::read(&text) else {
        return Err(process.failed(status).into());
    };
    let mut reading = Reading::at(point);
    summary.put_figures(payload, seconds, &mut reading);
    match conditions.process {
        Some(used) => {
            let busy = used.user_seconds + used.system_seconds;
            reading.put("processor_percent", busy / conditions.seconds * 100.0);
            reading.put("memory_mb", used.resident_bytes as f64 / 1e6);
        }
        None => {
            for name in ["processor_percent", "memory_mb"] {
                reading.lack(name, "no process of its own forwards");
            }
        }
    }
    let mut measured = TrialResult::new(reading, conditions);
    if summary.duplicates > 0 {
        let count = summary.duplicates;
        measured.note(format!("{count} pings were answered more than once"));
    }
    Ok(measured)
}

/// Summary that `ping` prints.
#[derive(Clone, Debug, Default, PartialEq)]
struct PingSummary {
    sent: u64,
    answered: u64,
    duplicates: u64,
    /// Minimum, mean, maximum and deviation, in milliseconds.
    times_ms: Option<[f64; 4]>,
}

impl PingSummary {
    /// Parses the summary of the iputils ping; `None` if there is no summary.
    fn read(text: &str) -> Option<Self> {
        let counts = text.lines().find(|line| line.contains(" transmitted, "))?;
        let count = |suffix: &str| {
            let part = counts.split(", ").find(|part| part.ends_with(suffix))?;
            let number = part.trim_start_matches('+').split(' ').next()?;
            number.parse().ok()
        };
        let mut summary = Self {
            sent: count(" packets transmitted")?,
            answered: count(" received")?,
            duplicates: count(" duplicates").unwrap_or(0),
            times_ms: None,
        };
        let times = text.lines().find_map(|line| {
            let (_, times) = line.strip_prefix("rtt ")?.split_once(" = ")?;
            let times = times.split(' ').next()?;
            let times: Option<Vec<f64>> = times.split('/').map(|one| one.parse().ok()).collect();
            <[f64; 4]>::try_from(times?).ok()
        });
        summary.times_ms = times;
        Some(summary)
    }

    fn put_figures(&self, payload: u64, seconds: f64, reading: &mut Reading) {
        let (sent, answered) = (self.sent as f64, self.answered as f64);
        reading.put("answered", answered);
        reading.put("lost_percent", (1.0 - answered / sent.max(1.0)) * 100.0);
        reading.put("mbit", answered * payload as f64 * 8.0 / seconds / 1e6);
        let names = ["least_us", "mean_us", "most_us", "deviation_us"];
        for (place, name) in names.into_iter().enumerate() {
            match self.times_ms {
                Some(times) => reading.put(name, times[place] * 1e3),
                None => reading.lack(name, "no ping was answered"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "PING 10.98.0.2 (10.98.0.2) 51200(51228) bytes of data.\n\n\
        --- 10.98.0.2 ping statistics ---\n\
        100 packets transmitted, 96 received, +2 duplicates, 4% packet loss, time 198ms\n\
        rtt min/avg/max/mdev = 0.120/0.250/1.580/0.012 ms, pipe 2\n";

    #[test]
    fn ping_summary_gives_the_figures() {
        let summary = PingSummary::read(SUMMARY).unwrap();
        assert_eq!((summary.sent, summary.answered), (100, 96));
        assert_eq!(summary.duplicates, 2);
        let mut reading = Reading::default();
        summary.put_figures(51_200, 0.2, &mut reading);
        let figures: Vec<(&str, f64)> = reading
            .figures
            .iter()
            .map(|(name, value)| (name.as_str(), (value * 1e3).round() / 1e3))
            .collect();
        let expected = [
            ("answered", 96.0),
            ("deviation_us", 12.0),
            ("least_us", 120.0),
            ("lost_percent", 4.0),
            ("mbit", 196.608),
            ("mean_us", 250.0),
            ("most_us", 1_580.0),
        ];
        assert_eq!(figures, expected);
    }

    #[test]
    fn ping_without_replies_is_a_result() {
        let silent = "3 packets transmitted, 0 received, 100% packet loss, time 4ms\n";
        let summary = PingSummary::read(silent).unwrap();
        let mut reading = Reading::default();
        summary.put_figures(100, 1.0, &mut reading);
        assert_eq!(reading.figures["lost_percent"], 100.0);
        assert_eq!(reading.absent["mean_us"], "no ping was answered");
        assert_eq!(PingSummary::read("ping: unknown host\n"), None);
        assert_eq!(PingSummary::read(""), None);
    }
}
