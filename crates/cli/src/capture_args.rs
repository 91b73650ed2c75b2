//! The arguments of `comporta capture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use watch::{CaptureOptions, SwitchTarget, WatchError};

use crate::top_args::seconds;

/// Show frames that a bridge receives and sends, with the rules that they hit: as text lines, or as
/// a file for Wireshark.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta capture br0\n  comporta capture br0 icmp,nw_dst=10.0.0.1 -c 10\n  comporta capture br0 in_port=eth1,tcp -w web.pcapng --seconds 30\n\nThe capture runs in the data plane and ends with the tool: other frames are delayed only by the\nfilter, and no frame is delayed when no capture runs."
)]
pub(crate) struct CaptureArgs {
    /// The bridge.
    bridge: String,
    /// The frames at ingress, as a flow in the syntax of ovs-ofctl [default: all].
    #[arg(default_value = "", hide_default_value = true)]
    flow: String,
    /// Write a file (pcapng; - for standard output) instead of lines, with the rules as comments.
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Stop after this number of received frames.
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Maximum number of captured bytes of each frame (up to 65535).
    #[arg(short, long, value_name = "BYTES", default_value_t = 9216)]
    snaplen: usize,
    /// The switch's control socket, or the name of a program with a pidfile (as for ovs-appctl).
    #[arg(long, short, value_name = "SOCKET")]
    target: Option<PathBuf>,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl CaptureArgs {
    /// Captures frames, and logs a summary.
    pub(crate) fn run(self) -> Result<(), WatchError> {
        let summary = watch::capture(&CaptureOptions {
            target: SwitchTarget {
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
            _ => tracing::warn!("{frames} frames captured, {missed} missed: the buffer was full"),
        }
        Ok(())
    }
}
