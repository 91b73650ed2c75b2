//! A staged tree of files, and the package made from it.
//!
//! The caller decides which files it contains.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output_of;
use crate::TaskError;
use crate::shell::Shell;

/// Size in bytes above which documents are compressed, as debhelper does.
const LONG: u64 = 4096;

/// The folder of dpkg's own files in a tree.
const FOR_DPKG: &str = "DEBIAN";

/// Compression of a file.
#[derive(Clone, Copy)]
pub(super) enum Compression {
    Always,
    IfLong,
    Never,
}

impl Compression {
    /// Returns the compression of a document: changelogs are always compressed, examples never.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "changelog" => Self::Always,
            _ if name.starts_with("examples/") => Self::Never,
            _ => Self::IfLong,
        }
    }
}

/// A staged tree.
pub(super) struct PackageStage {
    root: PathBuf,
    package: String,
    /// The file that was added last.
    last: PathBuf,
    /// Files to compress.
    compressed: Vec<PathBuf>,
    control: String,
}

impl PackageStage {
    /// Creates an empty tree at `root`, and removes an older one.
    pub(super) fn new(root: &Path, package: &str) -> Result<Self, TaskError> {
        if root.exists() {
            fs::remove_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
        }
        let stage = Self {
            root: root.to_owned(),
            package: package.to_owned(),
            last: PathBuf::new(),
            compressed: Vec::new(),
            control: String::new(),
        };
        stage.directory(FOR_DPKG)?;
        Ok(stage)
    }

    /// Creates a folder of the tree.
    pub(super) fn directory(&self, place: &str) -> Result<PathBuf, TaskError> {
        let path = self.root.join(place);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Adds a file.
    pub(super) fn put(
        &mut self,
        place: &str,
        content: impl AsRef<[u8]>,
        mode: u32,
    ) -> Result<(), TaskError> {
        let path = self.root.join(place);
        self.directory(parent(place))?;
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        self.last = path;
        Ok(())
    }

    /// Adds a copy of a file, and returns its path.
    pub(super) fn copy(
        &mut self,
        from: &Path,
        place: &str,
        mode: u32,
    ) -> Result<PathBuf, TaskError> {
        let content = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
        self.put(place, content, mode)?;
        Ok(self.last.clone())
    }

    /// Adds a symbolic link.
    pub(super) fn link(&self, place: &str, target: &str) -> Result<(), TaskError> {
        self.directory(parent(place))?;
        Ok(symlink(target, self.root.join(place))?)
    }

    /// Sets the compression of the file that was added last.
    pub(super) fn compress(&mut self, how: Compression) {
        let is_long = || fs::metadata(&self.last).is_ok_and(|file| file.len() > LONG);
        let is_compressed = match how {
            Compression::Always => true,
            Compression::IfLong => is_long(),
            Compression::Never => false,
        };
        if is_compressed {
            self.compressed.push(self.last.clone());
        }
    }

    /// Compresses all files of a folder.
    pub(super) fn compress_all(&mut self, folder: &Path) -> Result<(), TaskError> {
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            fs::set_permissions(&path, Permissions::from_mode(0o644))?;
            self.compressed.push(path);
        }
        Ok(())
    }

    /// Adds dpkg's control file, without the size.
    pub(super) fn control(&mut self, text: &str) -> Result<(), TaskError> {
        match text.contains("@SIZE@") {
            true => self.control = text.to_owned(),
            false => return Err(format!("{}: no place for its size", self.package).into()),
        }
        Ok(())
    }

    /// Adds a maintainer script.
    pub(super) fn script(&mut self, name: &str, text: &str) -> Result<(), TaskError> {
        self.put(&format!("{FOR_DPKG}/{name}"), text, 0o755)
    }

    /// Builds the package in `out`; its files have the modification time `moment`.
    pub(super) fn build(
        mut self,
        shell: &mut Shell,
        out: &Path,
        moment: &str,
    ) -> Result<PathBuf, TaskError> {
        if !self.compressed.is_empty() {
            let mut gzip = Command::new("gzip");
            gzip.args(["--best", "--no-name", "--force"]);
            shell.succeed(gzip.args(&self.compressed))?;
        }
        let found = found(&self.root)?;
        for folder in found.iter().filter(|path| path.is_dir()) {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        let size = size(&found)?.to_string();
        let control = self.control.replace("@SIZE@", &size);
        let field = |name: &str| {
            let line = control.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim)
                .ok_or_else(|| format!("{}: no {name} in its control file", self.package))
        };
        let name = format!(
            "{}_{}_{}.deb",
            field("Package:")?,
            field("Version:")?,
            field("Architecture:")?
        );
        self.put(&format!("{FOR_DPKG}/control"), control, 0o644)?;
        self.sums(shell, &found)?;
        let package = out.join(name);
        let mut build = Command::new("dpkg-deb");
        build.env("SOURCE_DATE_EPOCH", moment);
        build.args(["--root-owner-group", "--build"]);
        // dpkg-deb prints only the name.
        output_of(shell, build.arg(&self.root).arg(&package))?;
        fs::remove_dir_all(&self.root)?;
        Ok(package)
    }

    /// Adds the lists of configuration files and of checksums.
    fn sums(&mut self, shell: &mut Shell, found: &[PathBuf]) -> Result<(), TaskError> {
        let files = found
            .iter()
            .filter(|path| path.is_file() && !path.is_symlink());
        let inside = |path: &PathBuf| {
            let inside = path.strip_prefix(&self.root).ok()?;
            Some(inside.to_string_lossy().into_owned())
        };
        let files = files
            .filter_map(inside)
            .filter(|path| !path.starts_with(FOR_DPKG));
        let (owned, fixed): (Vec<_>, Vec<_>) = files.partition(|path| path.starts_with("etc/"));
        if !owned.is_empty() {
            let list: String = owned.iter().map(|path| format!("/{path}\n")).collect();
            self.put(&format!("{FOR_DPKG}/conffiles"), list, 0o644)?;
        }
        let mut sum = Command::new("env");
        sum.arg("-C").arg(&self.root).arg("md5sum").args(fixed);
        let sums = output_of(shell, &mut sum)? + "\n";
        self.put(&format!("{FOR_DPKG}/md5sums"), sums, 0o644)
    }
}

/// Returns the folder of a path in the tree.
fn parent(place: &str) -> &str {
    place.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns a folder and all that it contains, sorted.
fn found(folder: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let mut all = vec![folder.to_owned()];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() && !path.is_symlink() {
            true => all.extend(found(&path)?),
            false => all.push(path),
        }
    }
    all.sort();
    Ok(all)
}

/// Returns the installed size in KiB as Debian's policy counts it (5.6.20): files rounded up, and
/// one for everything else.
fn size(found: &[PathBuf]) -> Result<u64, TaskError> {
    let mut size = 0;
    for path in found {
        let of = fs::symlink_metadata(path)?;
        size += if of.is_file() {
            of.len().div_ceil(1024)
        } else {
            1
        };
    }
    Ok(size)
}
