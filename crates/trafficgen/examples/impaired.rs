//! The generator validated against a known truth, for `cargo xtask bench impaired`: a forwarder
//! between two hosts delays, loses, duplicates and reorders frames as configured, and counts each
//! fault. The program prints the measured value after the value of a bare cable is subtracted.
//!
//! Prints one line of JSON for each sample, then the figures over all runs. The program does not
//! judge: `cargo xtask bench` holds the limits.

#![allow(
    clippy::print_stdout,
    reason = "samples are what this program is for, and they go to standard output"
)]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use stats::{CONFIDENCE, Proportion, proportion_interval};
use testbed::Interrupt;
use testbed::{
    Bench, Chance, Clock, DeviceKind, DeviceOptions, FaultCounts, Faults, Host, Impairments,
    Settings, Setup, Spawner, pin_current_thread,
};
use trafficgen::{
    Length, Pace, Rate, Request, Stream, StreamOutcome, Template, TestPort, TestPortNo, measure,
};

type Failure = Box<dyn Error + Send + Sync>;

/// The tester's core, and the core of the forwarder, which busy-polls.
const TESTER: usize = 0;
const FORWARDER: usize = 1;

/// Frame size with FCS, as in the published experiments.
const FRAME_BYTES: u16 = 150;

/// The configured fault that a row compares with its measurement.
#[derive(Clone, Copy)]
enum Truth {
    /// The median delay, in microseconds.
    Delay(u64),
    /// The range of delays, from the 1st to the 99th percentile, in microseconds.
    Jitter(u64),
    /// The share of frames that is lost, duplicated or reordered, in per cent.
    Loss(f64),
    Copies(f64),
    Reordering(f64),
}

const ROWS: [(&str, Truth); 11] = [
    ("delay-0", Truth::Delay(0)),
    ("delay-100", Truth::Delay(100)),
    ("delay-300", Truth::Delay(300)),
    ("delay-1000", Truth::Delay(1_000)),
    ("delay-5000", Truth::Delay(5_000)),
    ("jitter-200", Truth::Jitter(200)),
    ("loss-tenth", Truth::Loss(0.1)),
    ("loss-1", Truth::Loss(1.0)),
    ("loss-5", Truth::Loss(5.0)),
    ("copies-1", Truth::Copies(1.0)),
    ("reordering-1", Truth::Reordering(1.0)),
];

impl Truth {
    /// The faults to configure; `seed` selects the affected frames.
    fn impairments(self, seed: u64) -> Impairments {
        let share = |percent: f64| Chance::Share(percent / 100.0);
        let none = Faults::default();
        let forth = match self {
            Self::Delay(us) => Faults {
                delay: Duration::from_micros(us),
                ..none
            },
            Self::Jitter(us) => Faults {
                jitter: Duration::from_micros(us),
                ..none
            },
            Self::Loss(percent) => Faults {
                loss: share(percent),
                ..none
            },
            Self::Copies(percent) => Faults {
                duplication: share(percent),
                ..none
            },
            Self::Reordering(percent) => Faults {
                reordering: share(percent),
                reordering_by: Duration::from_micros(500),
                ..none
            },
        };
        Impairments {
            forth,
            back: none,
            seed,
        }
    }

    /// The share of affected frames, if each frame is affected independently.
    fn share(self) -> Option<f64> {
        match self {
            Self::Loss(percent) | Self::Copies(percent) => Some(percent / 100.0),
            // Not all of the delayed frames are overtaken.
            Self::Reordering(_) | Self::Delay(_) | Self::Jitter(_) => None,
        }
    }

    /// Frames a second: for delays a rate so low that frames do not queue, for shares a rate that
    /// gives enough frames to count.
    const fn pps(self) -> u64 {
        match self {
            Self::Delay(_) | Self::Jitter(_) => 2_000,
            Self::Loss(_) | Self::Copies(_) | Self::Reordering(_) => 20_000,
        }
    }
}

fn main() -> Result<(), Failure> {
    let args = ImpairedArgs::read(std::env::args().skip(1))?;
    let directory = std::env::temp_dir().join(format!("impaired-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let bed = ImpairedSetup {
        clock: Clock::start(),
        spawner: Spawner::new()?,
        duration: Duration::from_millis(args.millis),
        directory: directory.clone(),
    };
    pin_current_thread(&[TESTER])?;
    let measured = bed.measure(&args);
    std::fs::remove_dir_all(&directory)?;
    measured
}

/// The command line: `[impaired] [--runs N] [--millis N] [ROW...]`.
struct ImpairedArgs {
    runs: u32,
    millis: u64,
    rows: Vec<String>,
}

impl ImpairedArgs {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut args = Self {
            runs: 1,
            millis: 1_000,
            rows: Vec::new(),
        };
        let mut words = words.filter(|word| word != "impaired");
        while let Some(word) = words.next() {
            let mut number = || words.next().ok_or("a number is missing");
            match word.as_str() {
                "--runs" => args.runs = number()?.parse()?,
                "--millis" => args.millis = number()?.parse()?,
                row => args.rows.push(row.to_owned()),
            }
        }
        Ok(args)
    }

    fn selects(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|args| args == row)
    }
}

fn print(row: &str, column: &str, value: f64) {
    println!("{{\"row\":\"{row}\",\"column\":\"{column}\",\"value\":{value}}}");
}

/// Sums over all runs of a row.
#[derive(Clone, Copy, Default)]
struct Sums {
    frames: u64,
    affected: u64,
    miscounted: u64,
    /// Runs with a confidence interval that excludes the configured value.
    outside: u32,
}

/// The test setup of this program.
struct ImpairedSetup {
    clock: Clock,
    spawner: Spawner,
    duration: Duration,
    directory: PathBuf,
}

impl ImpairedSetup {
    fn measure(&self, args: &ImpairedArgs) -> Result<(), Failure> {
        let rows: Vec<_> = ROWS
            .into_iter()
            .filter(|(row, _)| args.selects(row))
            .collect();
        let mut sums = vec![Sums::default(); rows.len()];
        for run in 0..u64::from(args.runs) {
            for ((row, truth), sums) in rows.iter().zip(&mut sums) {
                match truth {
                    Truth::Delay(us) => self.delay(row, *us as f64, *truth)?,
                    Truth::Jitter(us) => self.jitter(row, *us as f64, *truth)?,
                    _ => self.share(row, *truth, run + 1, sums)?,
                }
            }
        }
        for ((row, truth), sums) in rows.iter().zip(&sums) {
            if let Some(share) = truth.share() {
                print(row, "off in all, σ", sums.deviations(share));
                print(row, "runs outside 99 %", sums.outside.into());
            }
            if sums.frames > 0 {
                print(row, "miscounted in all", sums.miscounted as f64);
            }
        }
        Ok(())
    }

    /// Measures the median delay, less that of a bare cable; prints it also less that of the
    /// forwarder without a configured delay.
    fn delay(&self, row: &str, set: f64, truth: Truth) -> Result<(), Failure> {
        let median = |stream: &StreamOutcome| stream.delay_from_sent.value_at_quantile(0.5) as f64;
        let cable = median(&self.cable(truth.pps())?) / 1e3;
        let (idle, _) = self.forwarded(Truth::Delay(0), 1)?;
        let (stream, _) = self.forwarded(truth, 1)?;
        let measured = median(&stream) / 1e3 - cable;
        print(row, "cable", cable);
        print(row, "measured", measured);
        print(row, "off", (measured - set).abs());
        let forwarder = median(&idle) / 1e3 - cable;
        print(
            row,
            "off less the forwarder's own",
            (measured - forwarder - set).abs(),
        );
        Ok(())
    }

    /// Measures the difference of the 99th and the 1st percentile, less that of a bare cable.
    fn jitter(&self, row: &str, set: f64, truth: Truth) -> Result<(), Failure> {
        let apart = |stream: &StreamOutcome| {
            let at = |share| stream.delay_from_sent.value_at_quantile(share) as f64 / 1e3;
            at(0.99) - at(0.01)
        };
        let cable = apart(&self.cable(truth.pps())?);
        let (stream, _) = self.forwarded(truth, 1)?;
        let measured = apart(&stream) - cable;
        print(row, "cable", cable);
        print(row, "measured", measured);
        // The delay is uniform, so 98 % of the frames lie within 98 % of its range.
        print(row, "off", (measured - 0.98 * set).abs());
        Ok(())
    }

    /// Measures the affected frames as a share of the frames that reached the forwarder, and
    /// compares the count with the forwarder's own.
    fn share(&self, row: &str, truth: Truth, seed: u64, sums: &mut Sums) -> Result<(), Failure> {
        let (stream, counts) = self.forwarded(truth, seed)?;
        // Frames lost before the forwarder do not count: they are not its faults.
        let before = stream.achieved.frames.saturating_sub(counts.received);
        let (found, done) = match truth {
            Truth::Copies(_) => (stream.duplicated, counts.duplicated),
            Truth::Reordering(_) => (stream.reordered, counts.reordered),
            _ => (stream.lost - before.min(stream.lost), counts.discarded()),
        };
        print(
            row,
            "measured",
            100.0 * found as f64 / counts.received.max(1) as f64,
        );
        sums.frames += counts.received;
        sums.affected += found;
        sums.miscounted += found.abs_diff(done);
        if let Some(set) = truth.share() {
            let interval = proportion_interval(found, counts.received, CONFIDENCE);
            let holds = |within: Proportion| (within.low..=within.high).contains(&set);
            sums.outside += u32::from(!interval.is_some_and(holds));
        }
        Ok(())
    }

    /// Measures a bare cable.
    fn cable(&self, pps: u64) -> Result<StreamOutcome, Failure> {
        let bench = self.build(DeviceKind::Direct, Settings::None)?;
        self.offer(&bench, pps)
    }

    /// Measures the forwarder; returns also its fault counters.
    fn forwarded(&self, truth: Truth, seed: u64) -> Result<(StreamOutcome, FaultCounts), Failure> {
        let settings = Settings::Impairments(Box::new(truth.impairments(seed)));
        let bench = self.build(DeviceKind::Impaired(None), settings)?;
        let stream = self.offer(&bench, truth.pps())?;
        let device = bench.device().impairment().ok_or("it has faults")?;
        let [forth, _] = device.counts();
        Ok((stream, forth))
    }

    fn build(&self, kind: DeviceKind, settings: Settings) -> Result<Bench, Failure> {
        let options = DeviceOptions {
            kind,
            directory: self.directory.clone(),
            cores: vec![FORWARDER],
            comporta: PathBuf::new(),
        };
        let setup = Setup {
            settings,
            ..Setup::default()
        };
        Ok(Bench::build_as(
            &self.spawner,
            &self.clock,
            &options,
            &setup,
        )?)
    }

    fn offer(&self, bench: &Bench, pps: u64) -> Result<StreamOutcome, Failure> {
        let open = |host: &Host| {
            TestPort::packet(&host.namespace, host.interface, FRAME_BYTES, self.clock)
        };
        let hosts = bench.hosts().iter().take(2).map(open);
        let mut ends: Vec<TestPort> = hosts.collect::<Result<_, _>>()?;
        let pace = Pace::Constant(Rate::Frames(pps));
        let stream = Stream::new(
            Template::udp(FRAME_BYTES),
            pace,
            TestPortNo(0),
            TestPortNo(1),
        );
        let request = Request {
            drain: Duration::from_millis(200),
            ..Request::new(vec![stream], Length::of(self.duration))
        };
        let mut measured = measure(&mut ends, &request, &self.clock, &Interrupt::never())?;
        Ok(measured.streams.remove(0))
    }
}

impl Sums {
    /// The deviation from the configured share, in standard deviations of a binomial count.
    fn deviations(&self, share: f64) -> f64 {
        let frames = self.frames as f64;
        let deviation = (frames * share * (1.0 - share)).sqrt();
        (self.affected as f64 - frames * share).abs() / deviation
    }
}
