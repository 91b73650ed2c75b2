//! The generator compared with its peers, for `cargo xtask bench generator`: frames a second into a
//! pair of veth interfaces without a reader. The peers are a plain loop of sendmmsg(2) over the
//! same bytes and DPDK's `testpmd` in transmit-only mode. All run on one core, interleaved. The
//! deviation of the generator's rate from the requested one is measured too.
//!
//! Prints one line of JSON for each sample. The program does not judge: `cargo xtask bench` holds
//! the limits.

#![allow(
    clippy::print_stdout,
    reason = "samples are what this program is for, and they go to standard output"
)]

use std::error::Error;
use std::time::Duration;

use testbed::Interrupt;
use testbed::{Clock, Namespace, Program, Spawner, pin_current_thread};
use trafficgen::{
    Length, Pace, Rate, Request, Stream, Sweep, Template, TestPort, TestPortNo, Threads, Transmit,
    calibrate, measure,
};

type Failure = Box<dyn Error + Send + Sync>;

/// The core of the sender, and the core of everything else.
const SENDING: usize = 1;
const OTHERS: usize = 0;

/// The compared frame sizes, and the requested rates.
const SIZES: [(&str, u16); 2] = [("veth-64", 64), ("veth-1518", 1518)];
const RATES: [(&str, u64); 5] = [
    ("rate-1k", 1_000),
    ("rate-10k", 10_000),
    ("rate-100k", 100_000),
    ("rate-500k", 500_000),
    ("rate-1m", 1_000_000),
];

/// The highest rate that is both sent and received, and the rate error at 90 % of it.
const LIMIT: &str = "limit";
const RATE_LIMIT: &str = "rate-limit";

/// Column names.
const OURS: &str = "Comporta";
const LOOP: &str = "sendmmsg";
const PEER: &str = "testpmd";

fn main() -> Result<(), Failure> {
    let args = GeneratorArgs::read(std::env::args().skip(1))?;
    let setup = GeneratorSetup {
        clock: Clock::start(),
        spawner: Spawner::new()?,
        duration: Duration::from_millis(args.millis),
    };
    pin_current_thread(&[SENDING])?;
    for _ in 0..args.runs {
        for (row, bytes) in SIZES.into_iter().filter(|(row, _)| args.selects(row)) {
            print(row, OURS, setup.ours(bytes)?);
            print(row, LOOP, setup.plain(bytes)?);
            print(row, PEER, setup.testpmd(bytes)?);
        }
        for (row, pps) in RATES.into_iter().filter(|(row, _)| args.selects(row)) {
            print(row, OURS, setup.error(pps)?);
        }
        if args.selects(LIMIT) || args.selects(RATE_LIMIT) {
            let most = setup.limit()?;
            print(LIMIT, OURS, most as f64);
            print(RATE_LIMIT, OURS, setup.error(most * 9 / 10)?);
        }
    }
    Ok(())
}

/// The command line: `[generator] [--runs N] [--millis N] [ROW...]`.
struct GeneratorArgs {
    runs: u32,
    millis: u64,
    rows: Vec<String>,
}

impl GeneratorArgs {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut args = Self {
            runs: 1,
            millis: 1_000,
            rows: Vec::new(),
        };
        let mut words = words.filter(|word| word != "generator");
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

/// The test setup of this program.
struct GeneratorSetup {
    clock: Clock,
    spawner: Spawner,
    duration: Duration,
}

/// A pair of veth interfaces, both up, each in its own namespace.
struct ExampleCable {
    near: Namespace,
    far: Namespace,
}

impl GeneratorSetup {
    fn create(&self) -> Result<ExampleCable, Failure> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        near.join("eth0", &far, "eth0")?;
        near.set_up("eth0")?;
        far.set_up("eth0")?;
        let carries = || Ok(near.carries("eth0")?.then_some(()));
        self.clock
            .wait_for("a cable", Duration::from_secs(10), carries)?;
        Ok(ExampleCable { near, far })
    }

    /// Frames a second that arrive at the far interface while `send` runs.
    fn rate(
        &self,
        cable: &ExampleCable,
        mut send: impl FnMut() -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let before = cable.far.counters("eth0")?.rx_packets;
        let began = self.clock.now();
        let end = began + self.duration;
        while self.clock.now() < end {
            send()?;
        }
        let seconds = self.clock.now().since(began).as_secs_f64();
        let after = cable.far.counters("eth0")?.rx_packets;
        Ok((after - before) as f64 / seconds)
    }

    /// Measures our generator, with signatures and statistics, without a receiver.
    fn ours(&self, bytes: u16) -> Result<f64, Failure> {
        let cable = self.create()?;
        let near = TestPort::packet(&cable.near, "eth0", bytes, self.clock)?;
        let stream = Stream::new(
            Template::udp(bytes),
            Pace::FlatOut,
            TestPortNo(0),
            TestPortNo(0),
        );
        let request = Request {
            drain: Duration::ZERO,
            ..Request::new(vec![stream], Length::of(self.duration))
        };
        let before = cable.far.counters("eth0")?.rx_packets;
        let measured = measure(&mut [near], &request, &self.clock, &Interrupt::never())?;
        let after = cable.far.counters("eth0")?.rx_packets;
        let seconds = measured.streams[0].achieved.seconds;
        Ok((after - before) as f64 / seconds)
    }

    /// Measures a loop that sends the same bytes repeatedly.
    fn plain(&self, bytes: u16) -> Result<f64, Failure> {
        let cable = self.create()?;
        let mut sender = cable.near.frame_sender("eth0")?;
        let frame = vec![0x5a; usize::from(bytes) - 4];
        let frames = [frame.as_slice(); 64];
        self.rate(&cable, || {
            Ok(Transmit::send(&mut sender, &frames).map(|_| ())?)
        })
    }

    /// Measures DPDK's `testpmd`.
    fn testpmd(&self, bytes: u16) -> Result<f64, Failure> {
        let cable = self.create()?;
        let cores = format!("{OTHERS},{SENDING}");
        let length = format!("--txpkts={}", bytes - 4);
        let program = Program::new("dpdk-testpmd")
            .args(["-l", &cores, "--no-pci", "--no-telemetry"])
            .args(["--no-huge", "--no-shconf", "-m", "512"])
            .args(["--vdev=net_af_packet0,iface=eth0", "--"])
            .args(["--auto-start", "--forward-mode=txonly", "--no-flush-rx"])
            .args(["--stats-period=1", &length, "--total-num-mbufs=8192"])
            .inside(&cable.near);
        let mut process = self.spawner.start(program)?;
        let count = || {
            cable
                .far
                .counters("eth0")
                .map(|counters| counters.rx_packets)
        };
        let patience = Duration::from_secs(30);
        self.clock.wait_for("testpmd to send", patience, || {
            if !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
            Ok((count()? > 100_000).then_some(()))
        })?;
        let sleep = || {
            self.clock.sleep_until(self.clock.now() + self.duration);
            Ok(())
        };
        self.rate(&cable, sleep)
    }

    /// The highest rate of 64-byte frames, in frames a second, that one thread sends with less than
    /// 0.1 % shortfall and receives without loss.
    fn limit(&self) -> Result<u64, Failure> {
        let cable = self.create()?;
        let side = |namespace| TestPort::packet(namespace, "eth0", 64, self.clock);
        let mut ends = [side(&cable.near)?, side(&cable.far)?];
        let sweep = Sweep {
            template: Template::udp(64),
            sizes: vec![64],
            loads: Vec::new(),
            trial: self.duration / 10,
            halves: 7,
            threads: Threads::Solo,
        };
        let found = calibrate(&mut ends, &sweep, &self.clock, &Interrupt::never())?;
        match found.sizes.first() {
            Some(size) if size.pps > 0 => Ok(size.pps),
            _ => Err("no rate was kept".into()),
        }
    }

    /// The deviation of the rate at the far interface in per cent, from the kernel's timestamps of
    /// the first and the last frame received there.
    fn error(&self, pps: u64) -> Result<f64, Failure> {
        let cable = self.create()?;
        let side = |namespace| TestPort::packet(namespace, "eth0", 64, self.clock);
        let mut ends = [side(&cable.near)?, side(&cable.far)?];
        let pace = Pace::Constant(Rate::Frames(pps));
        let stream = Stream::new(Template::udp(64), pace, TestPortNo(0), TestPortNo(1));
        let request = Request::new(vec![stream], Length::of(self.duration));
        let measured = measure(&mut ends, &request, &self.clock, &Interrupt::never())?;
        let stream = &measured.streams[0];
        Ok(100.0 * (stream.received_pps() / pps as f64 - 1.0).abs())
    }
}
