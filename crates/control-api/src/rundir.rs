//! The run directory: where it is, and the names of the sockets in it.

use std::path::{Path, PathBuf};

/// The run directory of Open vSwitch.
const DEFAULT: &str = "/var/run/openvswitch";

/// The directory of the daemon's sockets and pidfiles.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Returns the given directory, else `OVS_RUNDIR`, else `/var/run/openvswitch`. The directory
    /// need not exist.
    #[must_use]
    pub fn named(wanted: Option<&Path>) -> Self {
        let from_environment = || {
            std::env::var_os("OVS_RUNDIR")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let path = wanted.map(Path::to_owned).or_else(from_environment);
        Self(path.unwrap_or_else(|| DEFAULT.into()))
    }

    /// Returns the path of the directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the absolute path of the directory.
    #[must_use]
    pub fn absolute(&self) -> PathBuf {
        std::path::absolute(&self.0).unwrap_or_else(|_| self.0.clone())
    }

    /// Returns the path of a file in the directory; an absolute `name` is returned unchanged.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

/// Returns the path of the socket at which the switch that runs `bridge` accepts OpenFlow tools.
/// `rundir` is as for [`RunDir::named`].
#[must_use]
pub fn management_socket(rundir: Option<&Path>, bridge: &str) -> PathBuf {
    RunDir::named(rundir).file(format!("{bridge}.mgmt"))
}

/// Returns the run directory and the control sockets in it, sorted by name: those of bridges, of a
/// switch as a whole, and of Open vSwitch's programs. `rundir` is as for [`RunDir::named`].
#[must_use]
pub fn control_sockets(rundir: Option<&Path>) -> (PathBuf, Vec<PathBuf>) {
    let directory = RunDir::named(rundir).file("");
    let files = std::fs::read_dir(&directory).into_iter().flatten();
    let paths = files.flatten().map(|file| file.path());
    let mut sockets: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "ctl"))
        .collect();
    sockets.sort();
    (directory, sockets)
}
