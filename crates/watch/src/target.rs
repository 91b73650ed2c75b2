//! The switch to observe: selected by one of its bridges, its control socket, its program name, or
//! as any switch in the run directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use control_api::telemetry::{TELEMETRY, Telemetry};
use control_api::{RequestError, control_sockets, request_at};

use crate::error::WatchError;

/// The switch to observe.
#[derive(Clone, Debug, Default)]
pub struct SwitchTarget {
    /// The run directory with its sockets; none for the default.
    pub rundir: Option<PathBuf>,
    /// Its control socket, or the name of its program, as in `ovs-appctl --target`.
    pub socket: Option<PathBuf>,
    /// One of its bridges.
    pub bridge: Option<String>,
}

impl SwitchTarget {
    /// Returns the run directory and the candidate sockets, the most likely first.
    fn sockets(&self) -> Result<(PathBuf, Vec<PathBuf>), WatchError> {
        let (directory, sockets) = control_sockets(self.rundir.as_deref());
        let sockets = match (&self.socket, &self.bridge) {
            (Some(socket), _) => vec![named(&directory, socket)?],
            (None, Some(bridge)) => vec![directory.join(format!("{bridge}.ctl"))],
            (None, None) => sockets,
        };
        Ok((directory, sockets))
    }

    /// Sends a command and returns the reply. Without a selected switch, the first that accepts the
    /// command replies.
    pub(crate) fn request(
        &self,
        command: &str,
        arguments: &[String],
    ) -> Result<String, WatchError> {
        let (directory, sockets) = self.sockets()?;
        let mut refused = None;
        for socket in &sockets {
            match request_at(socket, command, arguments) {
                Ok(reply) => return Ok(reply),
                Err(error @ RequestError::NoAnswer { .. }) if sockets.len() == 1 => {
                    return Err(error.into());
                }
                Err(RequestError::NoAnswer { .. }) => {}
                Err(error) => refused = Some(error),
            }
        }
        // A selected switch reports its refusal; other sockets may belong to programs that are no
        // switches.
        let is_selected = self.socket.is_some() || self.bridge.is_some();
        match refused.filter(|_| is_selected) {
            Some(error) => Err(error.into()),
            None => Err(WatchError::NoSwitch(directory)),
        }
    }

    /// Requests the telemetry, with up to `rules` of the busiest rules of each bridge.
    pub(crate) fn telemetry(&self, rules: usize) -> Result<Telemetry, WatchError> {
        let reply = self.request(TELEMETRY, &[rules.to_string()])?;
        let telemetry: Result<Telemetry, _> = serde_json::from_str(&reply);
        let telemetry = telemetry.map_err(|error| WatchError::MalformedReply(error.to_string()))?;
        let has = |name: &String| telemetry.bridges.iter().any(|bridge| bridge.name == *name);
        match self.bridge.as_ref().filter(|name| !has(name)) {
            Some(missing) => Err(WatchError::NoBridge(missing.clone())),
            None => Ok(telemetry),
        }
    }
}

/// Returns the socket that a target names: a path that ends in `.ctl`, or a program with a pidfile
/// in the directory (ovs-appctl(8), --target).
fn named(directory: &Path, target: &Path) -> Result<PathBuf, WatchError> {
    if target.is_absolute() || target.extension() == Some(OsStr::new("ctl")) {
        return Ok(directory.join(target));
    }
    let name = target.display();
    let path = directory.join(format!("{name}.pid"));
    match std::fs::read_to_string(&path) {
        Ok(process) => Ok(directory.join(format!("{name}.{}.ctl", process.trim()))),
        Err(error) => Err(WatchError::Pidfile { path, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_resolves_sockets_and_programs_with_pidfile() {
        let directory = std::env::temp_dir().join(format!("watch-target-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("ovs-vswitchd.pid"), "42\n").unwrap();
        let found = |target: &str| named(&directory, Path::new(target));
        assert_eq!(found("/x/y").unwrap(), Path::new("/x/y"));
        assert_eq!(found("br0.ctl").unwrap(), directory.join("br0.ctl"));
        let by_name = found("ovs-vswitchd").unwrap();
        assert_eq!(by_name, directory.join("ovs-vswitchd.42.ctl"));
        let reply = found("nobody").unwrap_err().to_string();
        assert!(reply.contains("nobody.pid"), "{reply}");
        let unanswered = SwitchTarget {
            rundir: Some(directory.clone()),
            ..SwitchTarget::default()
        };
        let reply = unanswered.telemetry(0).unwrap_err().to_string();
        assert!(reply.contains("no switch answers"), "{reply}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
