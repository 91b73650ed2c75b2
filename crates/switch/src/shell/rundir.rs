//! The run directory and the Unix sockets in it. A socket file that a killed
//! process left is taken over; one that somebody answers at is not.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::config::RUNDIR_DEFAULT;
use crate::error::SwitchError;

/// The directory where sockets are made.
#[derive(Clone, Debug)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    /// Makes the directory if need be.
    pub(crate) fn open(wanted: Option<&Path>) -> Result<Self, SwitchError> {
        let Self(path) = Self::named(wanted);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(SwitchError::RunDir { path, error }),
        }
    }

    /// The directory asked for, else `OVS_RUNDIR`, else Open vSwitch's, whether it is
    /// there or not.
    pub(crate) fn named(wanted: Option<&Path>) -> Self {
        let from_environment = || {
            std::env::var_os("OVS_RUNDIR")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let path = wanted.map(Path::to_owned).or_else(from_environment);
        Self(path.unwrap_or_else(|| RUNDIR_DEFAULT.into()))
    }

    /// Its path from the root on.
    pub(crate) fn whole(&self) -> PathBuf {
        std::path::absolute(&self.0).unwrap_or_else(|_| self.0.clone())
    }

    /// The path of a file in it; one that begins at the root stands for itself.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

/// Where the switch that runs `bridge` listens for tools. The run directory is found as
/// the switch finds its own.
#[must_use]
pub fn management_socket(rundir: Option<&Path>, bridge: &str) -> PathBuf {
    RunDir::named(rundir).file(format!("{bridge}.mgmt"))
}

/// The path of a file in the run directory, which is found as the switch finds its own,
/// and made if need be.
///
/// # Errors
/// It cannot be made.
pub fn rundir_file(rundir: Option<&Path>, name: &Path) -> Result<PathBuf, SwitchError> {
    Ok(RunDir::open(rundir)?.file(name))
}

/// A listening Unix socket whose file goes when it is dropped.
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
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
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

/// Removes a socket that nobody answers at.
fn clear_stale(path: &Path) -> Result<(), SwitchError> {
    if UnixStream::connect(path).is_ok() {
        return Err(SwitchError::SocketInUse {
            path: path.to_owned(),
        });
    }
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is no socket is in the way",
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
            tracing::debug!(path = %self.path.display(), %error, "the socket's file was gone already");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory =
            std::env::temp_dir().join(format!("comporta-rundir-{}", std::process::id()));
        RunDir::open(Some(&directory))
            .expect("a directory can be made")
            .file(name)
    }

    #[test]
    fn a_socket_in_use_is_refused_and_a_stale_one_taken_over() {
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
    fn a_file_that_is_no_socket_is_left_alone() {
        let path = scratch("no-socket");
        fs::write(&path, "precious").expect("writable");
        assert!(SocketFile::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).expect("still there"), "precious");
        fs::remove_file(path).expect("removable");
    }
}
