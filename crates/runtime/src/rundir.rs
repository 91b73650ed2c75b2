//! The run directory and the Unix sockets in it. The socket file of a killed process is replaced;
//! one with a live process behind it is not.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use control_api::RunDir;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::PROGRAM;
use crate::error::SwitchError;

/// The mode of sockets, whatever the umask: peers of a socket control the switch. As in Open
/// vSwitch.
const SOCKET_MODE: u32 = 0o770;

/// The mode of a run directory that is created here; the umask may reduce it.
const DIRECTORY_MODE: u32 = 0o755;

/// Returns the run directory, and creates it if necessary.
pub(crate) fn open(wanted: Option<&Path>) -> Result<RunDir, SwitchError> {
    let rundir = RunDir::named(wanted);
    let created = fs::DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(rundir.path());
    match created {
        Ok(()) => Ok(rundir),
        Err(error) => Err(SwitchError::RunDir {
            path: rundir.path().to_owned(),
            error,
        }),
    }
}

/// Returns the path of a file in the run directory. The directory is determined like the switch's
/// own, and created if necessary.
///
/// # Errors
/// The directory cannot be created.
pub fn rundir_file(rundir: Option<&Path>, name: &Path) -> Result<PathBuf, SwitchError> {
    Ok(open(rundir)?.file(name))
}

/// A listening Unix socket whose file is removed on drop.
pub(crate) struct SocketFile {
    path: PathBuf,
}

impl SocketFile {
    /// Listens at `path`.
    pub(crate) fn bind(path: &Path) -> Result<(UnixListener, Self), SwitchError> {
        match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => clear_stale(path)?,
            other => return claimed(path, other),
        }
        claimed(path, UnixListener::bind(path))
    }
}

fn claimed(
    path: &Path,
    bound: io::Result<UnixListener>,
) -> Result<(UnixListener, SocketFile), SwitchError> {
    let listener = bound
        .and_then(|listener| {
            // The file was just created, so its name leads to no other.
            fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
            listener.set_nonblocking(true).map(|()| listener)
        })
        .map_err(|error| SwitchError::Unix {
            path: path.to_owned(),
            error,
        })?;
    Ok((
        listener,
        SocketFile {
            path: path.to_owned(),
        },
    ))
}

/// Removes the control sockets that crashed processes have left: their names have the number of
/// the process, so no successor replaces them.
pub(crate) fn remove_stale_control_sockets(rundir: &RunDir) {
    let entries = fs::read_dir(rundir.path()).into_iter().flatten().flatten();
    for entry in entries {
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        let is_control = entry.file_name().to_str().is_some_and(is_control_socket);
        if is_socket
            && is_control
            && !has_listener(&entry.path())
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), %error, "cannot remove a stale socket");
        }
    }
}

/// Returns true for `PROGRAM.PID.ctl`.
fn is_control_socket(name: &str) -> bool {
    let pid = name
        .strip_prefix(PROGRAM)
        .and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".ctl"));
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
}

/// Returns true if a process listens at the socket, even if it does not accept connections now.
fn has_listener(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = SocketAddrUnix::new(path).and_then(|address| {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)
    });
    matches!(connected, Ok(()) | Err(Errno::AGAIN))
}

/// Removes the file of a socket without a live process behind it.
fn clear_stale(path: &Path) -> Result<(), SwitchError> {
    if has_listener(path) {
        return Err(SwitchError::SocketInUse {
            path: path.to_owned(),
        });
    }
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is no socket exists there",
        )),
        Err(error) => Err(error),
    };
    removed.map_err(|error| SwitchError::Unix {
        path: path.to_owned(),
        error,
    })
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "the socket's file was already removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory =
            std::env::temp_dir().join(format!("comporta-rundir-{}", std::process::id()));
        open(Some(&directory))
            .expect("a directory can be made")
            .file(name)
    }

    #[test]
    fn socket_in_use_is_refused_and_stale_one_replaced() {
        let path = scratch("in-use");
        let (listener, file) = SocketFile::bind(&path).expect("the path is free");
        assert!(matches!(
            SocketFile::bind(&path),
            Err(SwitchError::SocketInUse { .. })
        ));
        drop(listener);
        std::mem::forget(file);
        assert!(path.exists(), "as a killed process would leave it");
        let (_listener, file) = SocketFile::bind(&path).expect("nobody answers");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn stale_control_sockets_are_removed_and_others_stay() {
        let rundir = scratch("crashed");
        let rundir = open(Some(&rundir)).expect("a directory can be made");
        let name = |text: &str| rundir.file(format!("{PROGRAM}.{text}"));
        let listener = UnixListener::bind(name("1.ctl")).expect("the path is free");
        for other in ["2.ctl", "x.ctl", "3.sock"] {
            drop(UnixListener::bind(name(other)).expect("the path is free"));
        }
        remove_stale_control_sockets(&rundir);
        let exists = |text| name(text).exists();
        assert!(exists("1.ctl") && exists("x.ctl") && exists("3.sock"));
        assert!(!exists("2.ctl"));
        drop(listener);
        fs::remove_dir_all(rundir.path()).expect("removable");
    }

    #[test]
    fn sockets_have_a_mode_of_their_own() {
        let path = scratch("mode");
        let (_listener, _file) = SocketFile::bind(&path).expect("the path is free");
        let metadata = fs::symlink_metadata(&path).expect("it exists");
        assert_eq!(metadata.permissions().mode() & 0o777, SOCKET_MODE);
    }

    #[test]
    fn regular_file_is_not_replaced_by_socket() {
        let path = scratch("no-socket");
        fs::write(&path, "precious").expect("writable");
        assert!(SocketFile::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).expect("still there"), "precious");
        fs::remove_file(path).expect("removable");
    }
}
