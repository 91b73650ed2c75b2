//! The arguments of `comporta capture`: which frames of which bridge, and where they go.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use watch::{CaptureOptions, Target, WatchError};

use crate::top_args::seconds;

/// Show the frames that cross a bridge, as they come in and as they leave by each port, with the
/// rules that took them: as lines, or into a file that Wireshark reads.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta capture br0\n  comporta capture br0 icmp,nw_dst=10.0.0.1 -c 10\n  comporta capture br0 in_port=eth1,tcp -w web.pcapng --seconds 30\n\nWhat the tool asks for is done in the data plane, and ends with it: frames that are not watched are\nnot slowed but for a look at them, and none when no capture runs."
)]
pub(crate) struct CaptureArgs {
    /// The bridge.
    bridge: String,
    /// Which frames, by what they are when they come in, in the words of ovs-ofctl [default: all].
    #[arg(default_value = "", hide_default_value = true)]
    flow: String,
    /// Write them to a file (pcapng; - for standard output) in place of lines. Rules are comments.
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    file: Option<PathBuf>,
    /// End after so many frames that came in.
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// So many bytes of each frame at most (up to 65535).
    #[arg(short, long, value_name = "BYTES", default_value_t = 9216)]
    snaplen: usize,
    /// The switch's control socket, or the name of a program with a pidfile (as ovs-appctl has it).
    #[arg(long, short, value_name = "SOCKET")]
    target: Option<PathBuf>,
    /// Where the switch has its sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl CaptureArgs {
    /// Captures, and tells on standard error what came of it.
    pub(crate) fn run(self) -> Result<(), WatchError> {
        let summary = watch::capture(&CaptureOptions {
            target: Target {
                rundir: self.rundir,
                socket: self.target,
                bridge: Some(self.bridge.clone()),
            },
            bridge: self.bridge,
            flow: self.flow,
            file: self.file,
            count: self.count,
            time: self.seconds,
            snaplen: self.snaplen,
        })?;
        let (frames, missed) = (summary.frames, summary.missed);
        match missed {
            0 => tracing::info!("{frames} frames captured"),
            _ => tracing::warn!("{frames} frames captured, {missed} missed: there was no room"),
        }
        Ok(())
    }
}
