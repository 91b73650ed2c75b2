//! The arguments of `comporta trace`, and whom they are for: the switch that runs.

use std::path::PathBuf;

use clap::Args;
use control_api::RequestError;

/// Tell what would become of a frame, table by table; nothing is sent or counted.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta trace br0 in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80")]
pub(crate) struct TraceArgs {
    /// The bridge that the frame comes to.
    bridge: String,
    /// The frame, in the words of ovs-ofctl; what they do not say is zero.
    flow: String,
    /// Its bytes in hexadecimal, in place of what the flow says but for the port.
    packet: Option<String>,
    /// Where the switch has its sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl TraceArgs {
    /// What the switch tells.
    pub(crate) fn ask(self) -> Result<String, RequestError> {
        let arguments = [self.bridge.clone(), self.flow];
        let arguments: Vec<String> = arguments.into_iter().chain(self.packet).collect();
        control_api::request(
            self.rundir.as_deref(),
            &self.bridge,
            "ofproto/trace",
            &arguments,
        )
    }
}
