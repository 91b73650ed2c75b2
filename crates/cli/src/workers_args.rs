//! The arguments of `comporta workers`, and whom they are for: the switch that runs.

use std::path::PathBuf;

use clap::Args;
use control_api::RequestError;

/// Tell which worker takes the frames of which port, and how many it has taken and sent.
#[derive(Args)]
#[command(
    after_help = "Any bridge answers for all that the switch has.\n\nExample:\n  comporta workers br0"
)]
pub(crate) struct WorkersArgs {
    /// A bridge of the switch, as in br0.
    bridge: String,
    /// Where the switch has its sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl WorkersArgs {
    /// What the switch tells.
    pub(crate) fn ask(self) -> Result<String, RequestError> {
        let rundir = self.rundir.as_deref();
        control_api::request(rundir, &self.bridge, "comporta/workers", &[])
    }
}
