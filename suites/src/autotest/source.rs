//! Sources of Open vSwitch, as Debian's package `openvswitch-source` has them: unpacked,
//! configured, and with the two generated modules of Python that the harness loads. No program is
//! compiled.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use std::{fs, io};

use testbed::Failure;

/// Archive of the package.
const ARCHIVE: &str = "/usr/src/openvswitch/openvswitch.tar.gz";

/// File that shows that the sources are complete.
const READY: &str = "prepared";

/// Sources, prepared for the harness.
#[derive(Debug)]
pub(crate) struct SourceTree {
    root: PathBuf,
}

impl SourceTree {
    /// Prepares the sources below `directory`, unless they are ready and as new as the archive.
    pub(crate) fn prepare(directory: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(directory)
            .map_err(Failure::to(format!("create {}", directory.display())))?;
        let directory = directory
            .canonicalize()
            .map_err(Failure::to(format!("find {}", directory.display())))?;
        let tree = Self {
            root: directory.join("openvswitch"),
        };
        let archive = modified(Path::new(ARCHIVE)).map_err(Failure::to(format!(
            "read {ARCHIVE}: install it with cargo xtask autotest"
        )))?;
        if modified(&tree.root.join(READY)).is_ok_and(|ready| ready > archive) {
            return Ok(tree);
        }
        println!(
            "preparing Open vSwitch's sources in {}",
            tree.root.display()
        );
        let _ = fs::remove_dir_all(&tree.root);
        let mut unpack = Command::new("tar");
        unpack.args(["-xzf", ARCHIVE, "-C"]).arg(&directory);
        succeed(&mut unpack)?;
        let mut configure = Command::new("./configure");
        configure.arg("--disable-ssl");
        succeed(configure.current_dir(&tree.root))?;
        let mut make = Command::new("make");
        make.args(["python/ovs/version.py", "python/ovs/dirs.py"]);
        succeed(make.current_dir(&tree.root))?;
        fs::write(tree.root.join(READY), "").map_err(Failure::to("mark the sources as ready"))?;
        Ok(tree)
    }

    /// Returns the directory of the sources.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of the tests.
    pub(crate) fn tests(&self) -> PathBuf {
        self.root.join("tests")
    }

    /// Returns the path of the generated suite.
    pub(crate) fn testsuite(&self) -> PathBuf {
        self.tests().join("testsuite")
    }
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// Runs a command without its output; the failure has the last line of standard error.
fn succeed(command: &mut Command) -> Result<(), Failure> {
    let failure = Failure::to(format!("run {}", command.get_program().display()));
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return Ok(()),
        output => output,
    };
    Err(failure(output.map_or_else(
        |error| error,
        |output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            io::Error::other(text.lines().last().unwrap_or_default().to_owned())
        },
    )))
}
