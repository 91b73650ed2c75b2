//! A host, described by the files of its kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sys::ethtool::RingSizes;
use sys::interface::{InterfaceName, Interfaces};

/// The maximum number of bytes read from a file: `/proc/interrupts` of a large host has some
/// hundred kB.
const FILE_MAX: u64 = 4 << 20;

/// A host with its files below a root directory.
pub struct Host {
    root: PathBuf,
    /// Access to ethtool; none for the copy of another host.
    interfaces: Option<Interfaces>,
}

impl Host {
    /// Returns the local host.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn here() -> io::Result<Self> {
        Ok(Self {
            root: PathBuf::from("/"),
            interfaces: Some(Interfaces::current()?),
        })
    }

    /// Returns a host with its files below `root`, such as a copy of another host's files.
    #[must_use]
    pub const fn below(root: PathBuf) -> Self {
        Self {
            root,
            interfaces: None,
        }
    }

    /// Returns the path below the root of an absolute path.
    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        let file = file.as_ref();
        self.root.join(file.strip_prefix("/").unwrap_or(file))
    }

    /// Returns whether the file exists.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        self.path(file).exists()
    }

    /// Returns the trimmed content of a file. Returns none if the file cannot be read: the kernel
    /// does not have it, or permission is denied.
    pub(crate) fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        use io::Read;
        let file = fs::File::open(self.path(file)).ok()?;
        let mut text = String::new();
        file.take(FILE_MAX).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned())
    }

    /// Returns the content of a file as a number.
    pub(crate) fn number(&self, file: impl AsRef<Path>) -> Option<u64> {
        self.read(file)?.parse().ok()
    }

    /// Returns the sorted names in a directory.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Writes a value to an existing file.
    pub(crate) fn write(&self, file: &Path, word: &str) -> io::Result<()> {
        use io::Write;
        let mut file = fs::File::options().write(true).open(self.path(file))?;
        file.write_all(word.as_bytes())
    }

    /// Returns the ring sizes of an interface; none if its driver does not report them.
    pub(crate) fn rings(&self, interface: &str) -> Option<RingSizes> {
        let name: InterfaceName = interface.parse().ok()?;
        self.interfaces.as_ref()?.ring_sizes(&name).ok()
    }

    /// Returns whether an interface merges received frames into longer ones (LRO).
    pub(crate) fn merges(&self, interface: &str) -> Option<bool> {
        let name: InterfaceName = interface.parse().ok()?;
        self.interfaces.as_ref()?.has_lro(&name).ok()
    }
}
