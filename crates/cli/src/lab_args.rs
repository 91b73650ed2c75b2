//! The arguments of `comporta lab`: what was typed, and its translation into the
//! options that the lab takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::{Asked, DeviceKind, Options, Scenario};
use record::{BadSetting, MatchSet, Prober, Profile};
use report::Language;

use crate::lab_instrument::InstrumentCommand;
use crate::lab_results::{CheckArgs, CompareArgs, ExportArgs, ThresholdArgs};

/// Measure OpenFlow data planes, this one and others, side by side.
#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Run experiments and write a report.
    Run(Box<RunArgs>),
    /// Write the report of a run again, from its records alone.
    #[command(after_help = "Example:\n  comporta lab report results/run-1 --language pt")]
    Report {
        /// The run's directory.
        directory: PathBuf,
        /// The language of the report: en, pt or ja.
        #[arg(long, value_name = "LANGUAGE", default_value_t)]
        language: Language,
    },
    /// List experiments and devices, and what is missing to use each.
    List,
    /// List devices with their modes and ports, and what is missing to use each.
    #[command(after_help = "Example:\n  comporta lab devices external:my-switch.toml --json")]
    Devices {
        /// Devices that files describe, beside those that the lab knows: external:FILE.
        #[arg(value_name = "NAME")]
        described: Vec<DeviceKind>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put back what runs that were killed have left behind.
    Clean,
    /// Tell an experiment's method: its question, its steps, what can be set.
    #[command(after_help = "Example:\n  comporta lab show echo")]
    Show {
        /// The experiment.
        #[arg(value_name = "SCENARIO")]
        scenario: Scenario,
    },
    /// Tell which tests a run would do, and about how long it would take.
    #[command(after_help = "Example:\n  comporta lab plan all --profile quick")]
    Plan(Box<RunArgs>),
    /// Tell what changed from one run to another, and how certain that is.
    Compare(CompareArgs),
    /// Hold a run against thresholds.
    Check(CheckArgs),
    /// Write tables (CSV) and a page of Markdown of a run.
    Export(ExportArgs),
    #[command(flatten)]
    Instrument(InstrumentCommand),
}

/// What to measure, on what, and how often.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta lab run echo tcp-throughput --device comporta,ovs --runs 10"
)]
pub(crate) struct RunArgs {
    /// Experiments by name, by family (experiment-a, oflops, ...), or all; `comporta lab list`
    /// lists them.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<Asked>,
    /// Devices under test, all up at once and measured in turns
    /// [default: comporta,ovs,linux-bridge,direct].
    #[arg(long = "device", value_name = "NAME,...", value_delimiter = ',')]
    devices: Vec<DeviceKind>,
    /// Measure no bare cable beside the devices, which tells what of a delay is the tester's own.
    #[arg(long)]
    no_calibration: bool,
    /// How often each test is done; intervals are over these runs [default: 5].
    #[arg(long, value_name = "COUNT")]
    runs: Option<u32>,
    /// How thoroughly: quick (three runs of short tests), paper (as published) or rfc (as the
    /// standards want it). Other options still count [default: paper].
    #[arg(long, value_name = "NAME")]
    profile: Option<Profile>,
    /// The same as --profile quick.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// Values of an experiment's parameters; `comporta lab show` tells which there are.
    #[arg(long = "set", value_name = "NAME=VALUE,...")]
    settings: Vec<String>,
    /// Echoes in a test, or requests [default: 10000].
    #[arg(long, value_name = "COUNT")]
    packets: Option<u32>,
    /// Frame sizes of the echo, checksum (FCS) included [default: 64,128,256].
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',')]
    frame_bytes: Vec<u16>,
    /// What the rules of the echo match: port, mac, ip, udp, exact [default: all].
    #[arg(long = "match", value_name = "SET,...", value_delimiter = ',')]
    match_sets: Vec<MatchSet>,
    /// Who sends the echoes: solo (one busy-polling thread with both ends) or pair
    /// (a blocking client and server, as published) [default: solo].
    #[arg(long, value_name = "NAME")]
    prober: Option<Prober>,
    /// Seconds of one TCP test [default: 10].
    #[arg(long, value_name = "COUNT")]
    tcp_seconds: Option<u32>,
    /// Streams of one TCP test [default: 1].
    #[arg(long, value_name = "COUNT")]
    tcp_streams: Option<u32>,
    /// The server sends, in place of the client.
    #[arg(long)]
    tcp_reverse: bool,
    /// Milliseconds of one forwarding-rate test [default: 2000].
    #[arg(long, value_name = "COUNT")]
    rate_millis: Option<u32>,
    /// Frames a second to offer, beside as fast as possible.
    #[arg(long, value_name = "PPS,...", value_delimiter = ',')]
    rates: Vec<u32>,
    /// Flows of one flow-table test [default: 100000].
    #[arg(long, value_name = "COUNT")]
    flows: Option<u32>,
    /// Frames a second that meters let pass [default: 1000,10000,100000,200000].
    #[arg(long, value_name = "PPS,...", value_delimiter = ',')]
    meter_rates: Vec<u32>,
    /// Seconds of one meter's test [default: 4].
    #[arg(long, value_name = "COUNT")]
    meter_seconds: Option<u32>,
    /// Milliseconds of one test of changes [default: 5000].
    #[arg(long, value_name = "COUNT")]
    change_millis: Option<u32>,
    /// Frames a second that move while rules change [default: half of what each device carries].
    #[arg(long, value_name = "PPS")]
    change_rate: Option<u32>,
    /// Flows of the table that is told while frames move [default: 100000].
    #[arg(long, value_name = "COUNT")]
    dump_flows: Option<u32>,
    /// What determines the random order of tests [default: 1].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// The language of the report: en, pt or ja.
    #[arg(long, value_name = "LANGUAGE", default_value_t)]
    language: Language,
    /// Where records and report go [default: the next free of results/run-1, -2, ...].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in --out: what it has is not measured again.
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

impl RunArgs {
    /// The lab's options; `comporta` is this program and `command_line` how it was called.
    ///
    /// # Errors
    /// A setting is no setting.
    pub(crate) fn into_options(
        self,
        comporta: PathBuf,
        command_line: String,
    ) -> Result<Options, BadSetting> {
        let profile = match self.quick {
            true => Profile::Quick,
            false => self.profile.unwrap_or_default(),
        };
        let mut options = Options::of(profile);
        for text in &self.settings {
            options.parameters.settings.read(text)?;
        }
        options.scenarios = distinct(self.scenarios);
        options.directory = self.out.unwrap_or_else(Options::free_directory);
        options.resume = self.resume;
        options.comporta = comporta;
        options.command_line = command_line;
        options.language = self.language;
        options.tester_cores = self.tester_cores;
        options.device_cores = self.device_cores;
        replace(&mut options.runs, self.runs);
        replace(&mut options.seed, self.seed);
        replace_list(&mut options.devices, self.devices);
        if !self.no_calibration {
            options.add_calibration();
        }
        let echo = &mut options.parameters.echo;
        replace(&mut echo.packets, self.packets);
        replace(&mut echo.prober, self.prober);
        replace_list(&mut echo.frame_bytes, self.frame_bytes);
        replace_list(&mut echo.match_sets, self.match_sets);
        replace(
            &mut options.parameters.tcp_throughput.seconds,
            self.tcp_seconds,
        );
        replace(
            &mut options.parameters.tcp_throughput.streams,
            self.tcp_streams,
        );
        options.parameters.tcp_throughput.reverse = self.tcp_reverse;
        let rate = &mut options.parameters.forwarding_rate;
        replace(&mut rate.milliseconds, self.rate_millis);
        replace_list(&mut rate.paced_pps, self.rates);
        replace(&mut options.parameters.flow_table.flows, self.flows);
        let meters = &mut options.parameters.meters;
        replace(&mut meters.seconds, self.meter_seconds);
        let changes = &mut options.parameters.changes;
        replace(&mut changes.milliseconds, self.change_millis);
        changes.pps = self.change_rate.or(changes.pps);
        replace(&mut changes.dump_flows, self.dump_flows);
        replace_list(&mut meters.pps, self.meter_rates);
        Ok(options)
    }
}

/// All that was asked for, each once, in the order of the first.
fn distinct(asked: Vec<Asked>) -> Vec<Scenario> {
    let mut all = Vec::new();
    for scenario in asked.into_iter().flat_map(|asked| asked.0) {
        if !all.contains(&scenario) {
            all.push(scenario);
        }
    }
    all
}

fn replace<T>(option: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *option = given;
    }
}

fn replace_list<T>(option: &mut Vec<T>, given: Vec<T>) {
    if !given.is_empty() {
        *option = given;
    }
}
