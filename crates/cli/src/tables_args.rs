//! The arguments of `comporta tables`, which queries a running switch.

use std::path::PathBuf;

use clap::Args;
use control_api::RequestError;

/// Show how the tables of a bridge find rules, and the cost of a lookup.
#[derive(Args)]
#[command(
    after_help = "For each table: form, rules, bytes of memory, modelled instructions of a lookup, its \
                  measured nanoseconds, and the reason for the form.\n\n\
                  Example:\n  comporta tables br0"
)]
pub(crate) struct TablesArgs {
    /// The bridge, as in br0.
    bridge: String,
    /// The directory of the switch's sockets [default: $OVS_RUNDIR, /var/run/openvswitch].
    #[arg(long, value_name = "DIRECTORY")]
    rundir: Option<PathBuf>,
}

impl TablesArgs {
    /// Returns the reply of the switch.
    pub(crate) fn query(self) -> Result<String, RequestError> {
        let bridge = std::slice::from_ref(&self.bridge);
        let rundir = self.rundir.as_deref();
        control_api::request(rundir, &self.bridge, "comporta/tables", bridge)
    }
}
