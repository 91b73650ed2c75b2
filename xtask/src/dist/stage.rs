//! A tree of files that becomes a package.
//!
//! Not here: which files those are.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::said;
use crate::Failure;
use crate::shell::Shell;

/// Documents longer than that are compressed, as debhelper does it.
const LONG: u64 = 4096;

/// Where what is for dpkg itself stands in a tree.
const FOR_DPKG: &str = "DEBIAN";

/// Whether a file is compressed.
#[derive(Clone, Copy)]
pub(super) enum Compressed {
    Always,
    IfLong,
    Never,
}

impl Compressed {
    /// What is done to a document of this name: changes are looked for compressed, and
    /// examples are to be used as they are.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "changelog" => Self::Always,
            _ if name.starts_with("examples/") => Self::Never,
            _ => Self::IfLong,
        }
    }
}

/// The tree.
pub(super) struct Stage {
    root: PathBuf,
    package: String,
    /// The file that was put last.
    last: PathBuf,
    /// Files that are to be compressed.
    compressed: Vec<PathBuf>,
    control: String,
}

impl Stage {
    /// An empty tree at `root`, whatever was there.
    pub(super) fn new(root: &Path, package: &str) -> Result<Self, Failure> {
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

    /// A folder of the tree, which is made.
    pub(super) fn directory(&self, place: &str) -> Result<PathBuf, Failure> {
        let path = self.root.join(place);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Puts a file there.
    pub(super) fn put(
        &mut self,
        place: &str,
        content: impl AsRef<[u8]>,
        mode: u32,
    ) -> Result<(), Failure> {
        let path = self.root.join(place);
        self.directory(parent(place))?;
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        self.last = path;
        Ok(())
    }

    /// Puts a copy of a file there, and tells where that is.
    pub(super) fn copy(&mut self, from: &Path, place: &str, mode: u32) -> Result<PathBuf, Failure> {
        let content = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
        self.put(place, content, mode)?;
        Ok(self.last.clone())
    }

    /// Lays a link there.
    pub(super) fn link(&self, place: &str, target: &str) -> Result<(), Failure> {
        self.directory(parent(place))?;
        Ok(symlink(target, self.root.join(place))?)
    }

    /// Says what becomes of the file that was put last.
    pub(super) fn compress(&mut self, how: Compressed) {
        let is_long = || fs::metadata(&self.last).is_ok_and(|file| file.len() > LONG);
        let wanted = match how {
            Compressed::Always => true,
            Compressed::IfLong => is_long(),
            Compressed::Never => false,
        };
        if wanted {
            self.compressed.push(self.last.clone());
        }
    }

    /// Has all files of a folder compressed.
    pub(super) fn compress_all(&mut self, folder: &Path) -> Result<(), Failure> {
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            fs::set_permissions(&path, Permissions::from_mode(0o644))?;
            self.compressed.push(path);
        }
        Ok(())
    }

    /// What dpkg is told of the package, but for its size.
    pub(super) fn control(&mut self, text: &str) -> Result<(), Failure> {
        match text.contains("@SIZE@") {
            true => self.control = text.to_owned(),
            false => return Err(format!("{}: no place for its size", self.package).into()),
        }
        Ok(())
    }

    /// A script that dpkg runs.
    pub(super) fn script(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        self.put(&format!("{FOR_DPKG}/{name}"), text, 0o755)
    }

    /// Makes a package of it, in `out`, whose files bear this `moment`.
    pub(super) fn build(
        mut self,
        shell: &mut Shell,
        out: &Path,
        moment: &str,
    ) -> Result<PathBuf, Failure> {
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
        // What it says is no more than the name.
        said(shell, build.arg(&self.root).arg(&package))?;
        fs::remove_dir_all(&self.root)?;
        Ok(package)
    }

    /// Lists what the owner may change, and the sums of what nobody should.
    fn sums(&mut self, shell: &mut Shell, found: &[PathBuf]) -> Result<(), Failure> {
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
        let sums = said(shell, &mut sum)? + "\n";
        self.put(&format!("{FOR_DPKG}/md5sums"), sums, 0o644)
    }
}

/// The folder that a place of the tree is in.
fn parent(place: &str) -> &str {
    place.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// All that lies below a folder, and the folder itself, in order.
fn found(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
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

/// How many KiB it takes when it is installed, as Debian's policy counts them (5.6.20): files
/// rounded up, and one for all else.
fn size(found: &[PathBuf]) -> Result<u64, Failure> {
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
