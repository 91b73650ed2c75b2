//! The arguments of `comporta workers`, which queries a running switch.

use std::path::PathBuf;

use clap::Args;
use control_api::RequestError;

/// Show which worker receives from which port, with the numbers of received and sent frames.
#[derive(Args)]
#[command(
    after_help = "Any bridge answers for the whole switch.\n\nExample:\n  comporta workers br0"
)]
pub(crate) struct WorkersArgs {
    /// A bridge of the switch, as in br0.
    bridge: String,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl WorkersArgs {
    /// Returns the reply of the switch.
    pub(crate) fn query(self) -> Result<String, RequestError> {
        let rundir = self.rundir.as_deref();
        control_api::request(rundir, &self.bridge, "comporta/workers", &[])
    }
}
