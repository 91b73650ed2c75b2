//! The arguments of `comporta trace`, which queries a running switch.

use std::path::PathBuf;

use clap::Args;
use control_api::RequestError;

/// Show the path of a frame through the tables; nothing is sent or counted.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta trace br0 in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80")]
pub(crate) struct TraceArgs {
    /// The bridge that receives the frame.
    bridge: String,
    /// The frame, in the syntax of ovs-ofctl; other fields are zero.
    flow: String,
    /// The frame in hexadecimal, which replaces all fields of the flow but the port.
    packet: Option<String>,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl TraceArgs {
    /// Returns the reply of the switch.
    pub(crate) fn query(self) -> Result<String, RequestError> {
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
