//! The arguments of `comporta top`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use watch::{OutputForm, SwitchTarget, TopOptions, WatchError};

/// Show the activity of a switch, second by second: rates of its ports, tables, workers and busiest
/// rules. On a terminal it has panes and keys (? lists them); otherwise it writes text.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta top\n  comporta top --bridge br0 --interval 0.5\n  comporta top --once --sort out/s\n  comporta top --batch -n 10 --interval 1 > rates.txt"
)]
pub(crate) struct TopArgs {
    /// Show only this bridge [default: all bridges of the switch].
    #[arg(long)]
    bridge: Option<String>,
    /// The switch's control socket, or the name of a program with a pidfile (as for ovs-appctl).
    #[arg(long, short, value_name = "SOCKET")]
    target: Option<PathBuf>,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
    /// Seconds between two updates.
    #[arg(long, short = 'd', value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    interval: Duration,
    /// Number of the busiest rules of each bridge.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    rules: usize,
    /// Sort rows by this column, if it exists.
    #[arg(long, short, value_name = "COLUMN")]
    sort: Option<String>,
    /// Write text with exact numbers, also to a terminal.
    #[arg(long)]
    batch: bool,
    /// Write text this many times.
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<u64>,
    /// Write text once: the same as --batch -n 1.
    #[arg(long, conflicts_with = "count")]
    once: bool,
}

impl TopArgs {
    /// Shows the activity until it ends.
    pub(crate) fn run(self) -> Result<(), WatchError> {
        let count = if self.once { Some(1) } else { self.count };
        let is_text = self.batch || count.is_some() || !std::io::stdout().is_terminal();
        watch::top(TopOptions {
            target: SwitchTarget {
                rundir: self.rundir,
                socket: self.target,
                bridge: self.bridge,
            },
            interval: self.interval,
            rules: self.rules,
            sort: self.sort,
            form: match is_text {
                true => OutputForm::Text(count),
                false => OutputForm::Screen,
            },
        })
    }
}

/// Parses a number of seconds, which may have a fraction.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let invalid = || "expected seconds, as in 2 or 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| invalid())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| invalid())?;
    Some(time)
        .filter(|time| !time.is_zero())
        .ok_or_else(invalid)
}
