//! A host, as its kernel's files tell of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sys::ethtool::RingSizes;
use sys::interface::{InterfaceName, Interfaces};

/// The longest file that is read: `/proc/interrupts` of a large host has some hundred kB.
const FILE_MAX: u64 = 4 << 20;

/// A host whose files lie below a root.
pub struct Host {
    root: PathBuf,
    /// None for one that is not this one.
    interfaces: Option<Interfaces>,
}

impl Host {
    /// This one.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn here() -> io::Result<Self> {
        Ok(Self {
            root: PathBuf::from("/"),
            interfaces: Some(Interfaces::current()?),
        })
    }

    /// One whose files lie below `root`, such as a copy of another's.
    #[must_use]
    pub const fn below(root: PathBuf) -> Self {
        Self {
            root,
            interfaces: None,
        }
    }

    /// Where `file`, which is told from the root, lies.
    pub(crate) fn place(&self, file: impl AsRef<Path>) -> PathBuf {
        let file = file.as_ref();
        self.root.join(file.strip_prefix("/").unwrap_or(file))
    }

    /// Whether there is such a file.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        self.place(file).exists()
    }

    /// What the file says, without blanks at its ends; none if it cannot be read: there is
    /// none on this kernel, or it is not for us.
    pub(crate) fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        use io::Read;
        let file = fs::File::open(self.place(file)).ok()?;
        let mut text = String::new();
        file.take(FILE_MAX).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned())
    }

    /// The number that it says.
    pub(crate) fn number(&self, file: impl AsRef<Path>) -> Option<u64> {
        self.read(file)?.parse().ok()
    }

    /// The names in a directory, in their order.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.place(directory)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Writes a word into a file that is there.
    pub(crate) fn write(&self, file: &Path, word: &str) -> io::Result<()> {
        use io::Write;
        let mut file = fs::File::options().write(true).open(self.place(file))?;
        file.write_all(word.as_bytes())
    }

    /// The receive ring of an interface; none if its driver does not say.
    pub(crate) fn rings(&self, interface: &str) -> Option<RingSizes> {
        let name: InterfaceName = interface.parse().ok()?;
        self.interfaces.as_ref()?.ring_sizes(&name).ok()
    }

    /// Whether it merges received frames into longer ones (LRO).
    pub(crate) fn merges(&self, interface: &str) -> Option<bool> {
        let name: InterfaceName = interface.parse().ok()?;
        self.interfaces.as_ref()?.has_lro(&name).ok()
    }
}
