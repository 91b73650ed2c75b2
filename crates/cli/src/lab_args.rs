//! Arguments of `comporta lab`, and their translation into the options of a run.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::{DeviceKind, ExperimentId, MatchSet, Prober, RunOptions, Selection};
use record::{BadSetting, Profile, Settings};
use report::Language;

use crate::lab_instrument::InstrumentCommand;
use crate::lab_results::{CheckArgs, CompareArgs, ExportArgs, ThresholdArgs};

/// Measure OpenFlow data planes and compare them.
#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Run experiments and write a report.
    Run(Box<RunArgs>),
    /// Write the report of a run again, from its records.
    #[command(after_help = "Example:\n  comporta lab report results/run-1 --language pt")]
    Report {
        /// Directory of the run.
        directory: PathBuf,
        /// Language of the report: en, pt or ja.
        #[arg(long, value_name = "LANGUAGE", default_value_t)]
        language: Language,
    },
    /// List experiments and devices, with the missing requirements of each.
    List,
    /// List devices with their modes and ports, and the missing requirements of each.
    #[command(after_help = "Example:\n  comporta lab devices external:my-switch.toml --json")]
    Devices {
        /// Devices with a description file, in addition to the known ones: external:FILE.
        #[arg(value_name = "NAME")]
        described: Vec<DeviceKind>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Release the interfaces and processes of runs that were killed.
    Clean,
    /// Show the method of an experiment: its question, steps, parameters and figures.
    #[command(after_help = "Example:\n  comporta lab show echo")]
    Show {
        /// Experiment.
        #[arg(value_name = "EXPERIMENT")]
        experiment: ExperimentId,
    },
    /// List the trials of a run, with their approximate duration.
    #[command(after_help = "Example:\n  comporta lab plan all --profile quick")]
    Plan(Box<RunArgs>),
    /// Compare two runs, with the significance of the changes.
    Compare(CompareArgs),
    /// Check a run against thresholds.
    Check(CheckArgs),
    /// Export a run as tables (CSV) and a page of Markdown.
    Export(ExportArgs),
    #[command(flatten)]
    Instrument(InstrumentCommand),
}

/// Experiments, devices and parameters of a run.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta lab run echo tcp-throughput --device comporta,ovs --runs 10"
)]
pub(crate) struct RunArgs {
    /// Experiments by name, by family (experiment-a, oflops, ...), or all; see `comporta lab list`.
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<Selection>,
    /// Devices under test; all run at once and are measured in turn
    /// [default: comporta,ovs,linux-bridge,direct].
    #[arg(long = "device", value_name = "NAME,...", value_delimiter = ',')]
    devices: Vec<DeviceKind>,
    /// Do not measure the bare link, which shows the tester's own contribution to a delay.
    #[arg(long)]
    no_calibration: bool,
    /// Repetitions of each trial; intervals are over these runs [default: 5].
    #[arg(long, value_name = "COUNT")]
    runs: Option<u32>,
    /// Profile: quick (three runs of short trials), paper (as published) or rfc (as standardized);
    /// other options have precedence [default: paper].
    #[arg(long, value_name = "NAME")]
    profile: Option<Profile>,
    /// The same as --profile quick.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// Values of a parameter; `comporta lab show` lists the parameters of an experiment.
    #[arg(long = "set", value_name = "NAME=VALUE,...")]
    settings: Vec<String>,
    #[command(flatten)]
    parameters: ParameterArgs,
    /// Seed of the order of trials [default: 1].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Language of the report: en, pt or ja.
    #[arg(long, value_name = "LANGUAGE", default_value_t)]
    language: Language,
    /// Directory for records and report [default: the first free one of results/run-1, -2, ...].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in --out without its completed trials.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Cores for the lab and its hosts [default: chosen].
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    tester_cores: Vec<usize>,
    /// Cores for the devices [default: chosen].
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    device_cores: Vec<usize>,
    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
}

/// Options for parameters of single experiments; `--set` does the same for all parameters.
#[derive(Args)]
struct ParameterArgs {
    /// Echoes of a trial of echo, requests of a trial of tcp-requests [default: 10000].
    #[arg(long, value_name = "COUNT")]
    packets: Option<u32>,
    /// Frame sizes of echo, with the checksum (FCS) [default: 64,128,256].
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',')]
    frame_bytes: Vec<u16>,
    /// Fields that the rules of echo match: port, mac, ip, udp, exact [default: all].
    #[arg(long = "match", value_name = "SET,...", value_delimiter = ',')]
    match_sets: Vec<MatchSet>,
    /// Sender of the echoes: solo (one busy-polling thread with both sockets) or pair (blocking
    /// client and server, as published) [default: solo].
    #[arg(long, value_name = "NAME")]
    prober: Option<Prober>,
    /// Seconds of a trial with iperf3 [default: 10].
    #[arg(long, value_name = "COUNT")]
    tcp_seconds: Option<u32>,
    /// TCP streams of a trial with iperf3 [default: 1].
    #[arg(long, value_name = "COUNT")]
    tcp_streams: Option<u32>,
    /// The server sends instead of the client.
    #[arg(long)]
    tcp_reverse: bool,
    /// Milliseconds of a trial of forwarding-rate [default: 2000].
    #[arg(long, value_name = "COUNT")]
    rate_millis: Option<u32>,
    /// Intended loads of forwarding-rate in frames per second, in addition to flat-out.
    #[arg(long, value_name = "PPS,...", value_delimiter = ',')]
    rates: Vec<u32>,
    /// Flows of flow-table [default: 100000].
    #[arg(long, value_name = "COUNT")]
    flows: Option<u32>,
    /// Rates of meters in frames per second [default: 1000,10000,100000,200000].
    #[arg(long, value_name = "PPS,...", value_delimiter = ',')]
    meter_rates: Vec<u32>,
    /// Seconds of a trial of meters [default: 4].
    #[arg(long, value_name = "COUNT")]
    meter_seconds: Option<u32>,
    /// Milliseconds of a trial of changes [default: 5000].
    #[arg(long, value_name = "COUNT")]
    change_millis: Option<u32>,
    /// Frames per second in changes [default: half of the rate that each device carries].
    #[arg(long, value_name = "PPS")]
    change_rate: Option<u32>,
    /// Flows that changes lists under traffic [default: 100000].
    #[arg(long, value_name = "COUNT")]
    dump_flows: Option<u32>,
}

impl RunArgs {
    /// Returns the options of the run; `comporta` is this program, and `command_line` its command.
    ///
    /// # Errors
    /// A setting has the wrong form.
    pub(crate) fn into_options(
        self,
        comporta: PathBuf,
        command_line: String,
    ) -> Result<RunOptions, BadSetting> {
        let profile = match self.quick {
            true => Profile::Quick,
            false => self.profile.unwrap_or_default(),
        };
        let mut options = RunOptions::of(profile);
        for text in &self.settings {
            options.settings.parse(text)?;
        }
        options.experiments = distinct(self.experiments);
        self.parameters
            .apply(&options.experiments, &mut options.settings);
        options.directory = self.out.unwrap_or_else(RunOptions::free_directory);
        options.resume = self.resume;
        options.comporta = comporta;
        options.command_line = command_line;
        options.language = self.language;
        options.tester_cores = self.tester_cores;
        options.device_cores = self.device_cores;
        if let Some(runs) = self.runs {
            options.runs = runs;
        }
        if let Some(seed) = self.seed {
            options.seed = seed;
        }
        if !self.devices.is_empty() {
            options.devices = self.devices;
        }
        if !self.no_calibration {
            options.add_calibration();
        }
        Ok(options)
    }
}

impl ParameterArgs {
    /// Sets the parameters of the experiments that are measured.
    fn apply(self, experiments: &[ExperimentId], settings: &mut Settings) {
        let texts = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>();
        let one = |value: Option<u32>| texts(value.as_slice());
        let sizes = self.frame_bytes.iter().map(u16::to_string).collect();
        let match_sets = self.match_sets.iter().map(|set| set.name().to_owned());
        let prober = self.prober.iter().map(|prober| prober.name().to_owned());
        let direction = self.tcp_reverse.then(|| "reverse".to_owned());
        let mut offers = texts(&self.rates);
        if !offers.is_empty() {
            offers.push("flat-out".to_owned());
        }
        for (of, parameter, values) in [
            (&["echo", "tcp-requests"][..], "packets", one(self.packets)),
            (&["echo"], "frame_bytes", sizes),
            (&["echo"], "match_set", match_sets.collect()),
            (&["echo"], "prober", prober.collect()),
            (TCP, "seconds", one(self.tcp_seconds)),
            (TCP, "streams", one(self.tcp_streams)),
            (TCP, "direction", direction.into_iter().collect()),
            (&["forwarding-rate"], "millis", one(self.rate_millis)),
            (&["forwarding-rate"], "offer", offers),
            (&["flow-table"], "flows", one(self.flows)),
            (&["meters"], "pps", texts(&self.meter_rates)),
            (&["meters"], "seconds", one(self.meter_seconds)),
            (&["changes"], "millis", one(self.change_millis)),
            (&["changes"], "rate", one(self.change_rate)),
            (&["changes"], "dump-flows", one(self.dump_flows)),
        ] {
            let measured = |name: &&&str| experiments.iter().any(|one| one.name() == **name);
            for experiment in of.iter().filter(measured) {
                if !values.is_empty() {
                    settings.set_default(experiment, parameter, values.clone());
                }
            }
        }
    }
}

/// Experiments with iperf3.
const TCP: &[&str] = &["tcp-throughput", "vlan-ports"];

/// Returns the selected experiments in the order of the first selection, each once.
fn distinct(selections: Vec<Selection>) -> Vec<ExperimentId> {
    let mut all = Vec::new();
    for experiment in selections.into_iter().flat_map(|selection| selection.0) {
        if !all.contains(&experiment) {
            all.push(experiment);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use record::Point;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        run: RunArgs,
    }

    fn options(line: &str) -> RunOptions {
        let words = std::iter::once("run").chain(line.split(' '));
        let command = Command::parse_from(words);
        let options = command.run.into_options(PathBuf::new(), line.to_owned());
        let options = options.unwrap();
        options.check().unwrap();
        options
    }

    fn points(options: &RunOptions, experiment: &str) -> Vec<String> {
        let of = |one: &&ExperimentId| one.name() == experiment;
        let experiment = options.experiments.iter().find(of).unwrap().description();
        let points = options.settings.points(experiment).unwrap().into_iter();
        let text = |point: Point| {
            let values = point.iter();
            let values = values.map(|(name, value)| format!("{name}={value}"));
            values.collect::<Vec<_>>().join(" ")
        };
        points.map(text).collect()
    }

    #[test]
    fn options_set_parameters_of_measured_experiments() {
        let options = options(
            "echo forwarding-rate tcp-throughput flow-table --quick --packets 50 --frame-bytes 64,1518 \
             --match ip --prober pair --rates 1000 --rate-millis 200 --tcp-seconds 3 --tcp-reverse \
             --flows 700 --change-rate 9000",
        );
        let echo = points(&options, "echo");
        assert_eq!(echo.len(), 2, "{echo:?}");
        assert!(echo[1].contains("match_set=ip") && echo[1].contains("prober=pair"));
        assert!(echo[1].contains("frame_bytes=1518") && echo[1].contains("packets=50"));
        let rate = points(&options, "forwarding-rate");
        assert_eq!(rate.len(), 2, "{rate:?}");
        assert!(rate[0].contains("offer=1000") && rate[1].contains("offer=flat-out"));
        assert!(rate[0].contains("millis=200"));
        let tcp = points(&options, "tcp-throughput");
        assert!(tcp[0].contains("seconds=3") && tcp[0].contains("direction=reverse"));
        assert!(points(&options, "flow-table")[0].contains("flows=700"));
    }

    #[test]
    fn setting_has_precedence_over_an_option() {
        let options = options("echo --packets 50 --set echo.packets=70");
        assert!(points(&options, "echo")[0].contains("packets=70"));
    }
}
