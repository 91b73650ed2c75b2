//! `cargo xtask dist`: builds Debian packages from staged trees, with Debian's own programs.
//!
//! - `comporta` contains the program, its manual, its completions and a service that is disabled
//!   until it is configured. It changes nothing that runs.
//! - `comporta-dpdk` is `comporta` with DPDK ports, and replaces it.
//! - `comporta-vswitchd` installs the program under the name ovs-vswitchd next to Debian's
//!   `openvswitch-switch`.
//!
//! Builds are reproducible: the same program and commit give the same bytes. The texts of the
//! packages are in `contrib/debian`.

mod notices;
mod sbom;
mod stage;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use stage::{Compression, PackageStage};

use crate::metadata::cargo;
use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The folder of the packages' texts, from the project's root.
const TEXTS: &str = "contrib/debian";

/// Version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Names of the package with the program, without DPDK and with it.
const PLAIN: &str = "comporta";
const WITH_DPDK: &str = "comporta-dpdk";

/// The package that replaces Open vSwitch's daemon.
const VSWITCHD: &str = "comporta-vswitchd";

/// The name of the bill of materials among the documents.
const BILL: &str = "comporta.cdx.json";

/// Documents, from the project's root, and their names in the package's folder of documents. Long
/// documents are compressed.
#[rustfmt::skip]
const DOCUMENTS: [(&str, &str); 9] = [
    ("README.md",                   "README.md"),
    ("CHANGELOG.md",                "changelog"),
    ("docs/conformance.md",         "conformance.md"),
    ("docs/measuring.md",           "measuring.md"),
    ("docs/guide/lab.md",           "guide/lab.md"),
    ("docs/guide/switch.md",        "guide/switch.md"),
    ("docs/guide/vswitchd.md",      "guide/vswitchd.md"),
    ("docs/grafana/comporta.json",  "examples/grafana/comporta.json"),
    ("contrib/mininet/comporta.py", "examples/mininet/comporta.py"),
];

/// The paths of completions, by shell.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/comporta"),
    ("zsh", "usr/share/zsh/vendor-completions/_comporta"),
    ("fish", "usr/share/fish/vendor_completions.d/comporta.fish"),
];

/// The options of the command.
#[derive(Debug, Default, PartialEq)]
struct DistOptions<'a> {
    /// An existing program, instead of a new build.
    binary: Option<&'a str>,
    /// True if the build includes DPDK ports.
    dpdk: bool,
    /// Directory of the packages; `target/dist` by default.
    out: Option<&'a str>,
}

impl<'a> DistOptions<'a> {
    fn read(words: &[&'a str]) -> Result<Self, TaskError> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--dpdk" => options.dpdk = true,
                "--binary" => {
                    options.binary = Some(words.next().ok_or("--binary: missing program")?)
                }
                "--out" => options.out = Some(words.next().ok_or("--out: missing directory")?),
                word => {
                    let all = "--dpdk, --binary FILE and --out DIRECTORY are all there is";
                    return Err(format!("unknown option `{word}`: {all}").into());
                }
            }
        }
        if options.dpdk && options.binary.is_some() {
            return Err(
                "--binary names a program: leave --dpdk out, which is for building one".into(),
            );
        }
        Ok(options)
    }
}

/// The properties that all packages of one call share.
struct Release {
    /// Directory of packages and staged trees.
    out: PathBuf,
    version: String,
    maintainer: String,
    architecture: String,
    /// Modification time of all files, in seconds since 1970.
    moment: String,
    /// The program.
    binary: PathBuf,
    /// True if the program has DPDK ports.
    dpdk: bool,
}

/// Builds the packages.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let options = DistOptions::read(words)?;
    setup::packaging(shell)?;
    let binary = match options.binary {
        Some(path) => shell.root().join(path),
        None => build(shell, options.dpdk)?,
    };
    let out = shell.root().join(options.out.unwrap_or("target/dist"));
    let release = Release::of(shell, binary, out)?;
    let trees = [release.program(shell)?, release.vswitchd(shell)?];
    for stage in trees {
        let package = stage.build(shell, &release.out, &release.moment)?;
        println!("package: {}", package.display());
    }
    fs::remove_dir_all(release.out.join("stage"))?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the program with the release profile.
fn build(shell: &mut Shell, dpdk: bool) -> Result<PathBuf, TaskError> {
    let mut command = Command::new(cargo());
    command.args(["build", "--release", "--locked", "--package", "cli"]);
    if dpdk {
        setup::dpdk(shell)?;
        command.args(["--features", "dpdk"]);
    }
    shell.succeed(&mut command)?;
    Ok(shell.root().join("target/release/comporta"))
}

impl Release {
    fn of(shell: &mut Shell, binary: PathBuf, out: PathBuf) -> Result<Self, TaskError> {
        let printed = output_of(shell, Command::new(&binary).arg("--version"))?;
        let dpdk = has_dpdk(&printed)?;
        fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        Ok(Self {
            out,
            version: format!("{VERSION}-1"),
            maintainer: maintainer(shell)?,
            architecture: output_of(shell, Command::new("dpkg").arg("--print-architecture"))?,
            moment: moment(shell)?,
            binary,
            dpdk,
        })
    }

    /// Returns the name of the package with the program.
    const fn name(&self) -> &'static str {
        match self.dpdk {
            true => WITH_DPDK,
            false => PLAIN,
        }
    }

    /// Reads a text of `contrib/debian` and replaces its placeholders.
    fn text(&self, shell: &Shell, name: &str) -> Result<String, TaskError> {
        let path = shell.root().join(TEXTS).join(name);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let variant = if self.dpdk { ", with DPDK" } else { "" };
        let words = [
            ("@PACKAGE@", self.name()),
            ("@VERSION@", &self.version),
            ("@ARCHITECTURE@", &self.architecture),
            ("@MAINTAINER@", &self.maintainer),
            ("@VARIANT@", variant),
        ];
        let with = |text: String, (word, value): &(&str, &str)| text.replace(word, value);
        Ok(words.iter().fold(text, with))
    }

    /// Creates a tree with the changelog and the licence, which every package has.
    fn stage(&self, shell: &mut Shell, package: &str) -> Result<PackageStage, TaskError> {
        let mut stage = PackageStage::new(&self.out.join("stage").join(package), package)?;
        let documents = format!("usr/share/doc/{package}");
        let date = format!("--date=@{}", self.moment);
        let date = output_of(
            shell,
            Command::new("date").args(["--utc", "--rfc-email", &date]),
        )?;
        let changes = format!(
            "comporta ({}) unstable; urgency=medium\n\n  * See the changelog of the program.\n\n -- {}  {date}\n",
            self.version, self.maintainer
        );
        stage.put(&format!("{documents}/changelog.Debian"), changes, 0o644)?;
        stage.compress(Compression::Always);
        let licence = self.text(shell, "copyright")?;
        stage.put(&format!("{documents}/copyright"), licence, 0o644)?;
        Ok(stage)
    }

    /// Stages the package with the program.
    fn program(&self, shell: &mut Shell) -> Result<PackageStage, TaskError> {
        let package = self.name();
        let mut stage = self.stage(shell, package)?;
        let program = stage.copy(&self.binary, "usr/bin/comporta", 0o755)?;
        let mut strip = Command::new("strip");
        strip.args(["--remove-section=.comment", "--remove-section=.note"]);
        shell.succeed(strip.arg(&program))?;
        self.manual(shell, &mut stage)?;
        let documents = format!("usr/share/doc/{package}");
        for (from, to) in DOCUMENTS {
            stage.copy(
                &shell.root().join(from),
                &format!("{documents}/{to}"),
                0o644,
            )?;
            stage.compress(Compression::of(to));
        }
        let notices = notices::text(shell.root(), self.dpdk)?;
        stage.put(&format!("{documents}/notices"), notices, 0o644)?;
        stage.compress(Compression::Always);
        let bill = sbom::text(shell.root(), self.dpdk, &self.version)?;
        stage.put(&format!("{documents}/{BILL}"), bill, 0o644)?;
        stage.compress(Compression::Always);
        self.service(shell, &mut stage)?;
        let libraries = libraries(shell, &self.out.join("stage/libraries"), &program)?;
        let relations = relations(self.dpdk, &self.version, &libraries);
        let control = self.text(shell, "comporta.control")?;
        stage.control(&control.replace("@RELATIONS@", &relations))?;
        for script in ["postinst", "prerm", "postrm"] {
            stage.script(script, &self.text(shell, &format!("comporta.{script}"))?)?;
        }
        Ok(stage)
    }

    /// Adds the manual and the completions, which the program prints.
    fn manual(&self, shell: &mut Shell, stage: &mut PackageStage) -> Result<(), TaskError> {
        let date = format!("--date=@{}", self.moment);
        let date = output_of(shell, Command::new("date").args(["--utc", &date, "+%F"]))?;
        let pages = stage.directory("usr/share/man/man1")?;
        let mut man = Command::new(&self.binary);
        man.arg("man").arg(&pages).args(["--date", &date]);
        shell.succeed(&mut man)?;
        stage.compress_all(&pages)?;
        for (name, place) in COMPLETIONS {
            let script = output_of(
                shell,
                Command::new(&self.binary).args(["completions", name]),
            )?;
            stage.put(place, script + "\n", 0o644)?;
        }
        Ok(())
    }

    /// Adds the service.
    fn service(&self, shell: &Shell, stage: &mut PackageStage) -> Result<(), TaskError> {
        let units = "lib/systemd/system";
        let mut put = |name: &str, place: &str| {
            let text = self.text(shell, name)?;
            stage.put(place, text, 0o644)
        };
        put("comporta.service", &format!("{units}/comporta.service"))?;
        put("af-xdp.conf", "usr/share/comporta/af-xdp.conf")?;
        if self.dpdk {
            put(
                "dpdk.conf",
                &format!("{units}/comporta.service.d/dpdk.conf"),
            )?;
        }
        put("comporta.toml", "etc/comporta/comporta.toml")?;
        put("comporta.default", "etc/default/comporta")
    }

    /// Stages the package that replaces Open vSwitch's daemon.
    fn vswitchd(&self, shell: &mut Shell) -> Result<PackageStage, TaskError> {
        let mut stage = self.stage(shell, VSWITCHD)?;
        // The program runs as ovs-vswitchd if that is its name.
        let name = format!("usr/lib/{VSWITCHD}/ovs-vswitchd");
        stage.link(&name, "../../bin/comporta")?;
        let printed = self.text(shell, "README.Debian")?;
        stage.put(
            &format!("usr/share/doc/{VSWITCHD}/README.Debian"),
            printed,
            0o644,
        )?;
        stage.control(&self.text(shell, "comporta-vswitchd.control")?)?;
        for script in ["postinst", "prerm"] {
            let text = self.text(shell, &format!("{VSWITCHD}.{script}"))?;
            stage.script(script, &text)?;
        }
        Ok(stage)
    }
}

/// Returns the dependencies of the package with the program. The variants with and without DPDK
/// replace each other.
fn relations(dpdk: bool, version: &str, libraries: &str) -> String {
    let (other, more) = match dpdk {
        true => (
            PLAIN,
            format!(
                "Recommends: librte-meta-bus, librte-meta-mempool, librte-meta-net\nProvides: {PLAIN} (= {version})\n"
            ),
        ),
        false => (WITH_DPDK, String::new()),
    };
    // `postinst` creates the user of the service.
    format!("Depends: {libraries}, passwd\n{more}Conflicts: {other}\nReplaces: {other}\n")
}

/// Returns true if the `--version` line of a program names DPDK; the version must be this one.
fn has_dpdk(printed: &str) -> Result<bool, TaskError> {
    match printed.strip_prefix(&format!("comporta {VERSION}")) {
        Some("") => Ok(false),
        Some(", with DPDK") => Ok(true),
        _ => Err(format!(
            "the program is `{printed}`, and the packages are for comporta {VERSION}: build it again"
        )
        .into()),
    }
}

/// Returns the time of the last commit, or `SOURCE_DATE_EPOCH`.
fn moment(shell: &mut Shell) -> Result<String, TaskError> {
    match env::var("SOURCE_DATE_EPOCH") {
        Ok(moment) => Ok(moment),
        Err(_) => output_of(
            shell,
            Command::new("git").args(["log", "-1", "--format=%ct"]),
        ),
    }
}

/// Returns the maintainer from Debian's variables, or the author of the last commit.
fn maintainer(shell: &mut Shell) -> Result<String, TaskError> {
    match (env::var("DEBFULLNAME"), env::var("DEBEMAIL")) {
        (Ok(name), Ok(address)) => Ok(format!("{name} <{address}>")),
        _ => output_of(
            shell,
            Command::new("git").args(["log", "-1", "--format=%an <%ae>"]),
        ),
    }
}

/// Returns the packages of the libraries that `program` is linked to.
fn libraries(shell: &mut Shell, folder: &Path, program: &Path) -> Result<String, TaskError> {
    // dpkg-shlibdeps requires a source package around the program.
    let debian = folder.join("debian");
    fs::create_dir_all(&debian)?;
    let source = "Source: comporta\n\nPackage: comporta\nArchitecture: any\n";
    fs::write(debian.join("control"), source)?;
    let mut command = Command::new("env");
    command.arg("-C").arg(folder);
    command.args(["dpkg-shlibdeps", "-O"]).arg(program);
    let printed = output_of(shell, &mut command)?;
    let found = printed
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(found
        .ok_or("dpkg-shlibdeps printed no packages")?
        .to_owned())
}

/// Runs a program that must succeed, and returns its output.
fn output_of(shell: &mut Shell, command: &mut Command) -> Result<String, TaskError> {
    let mut lines = Vec::new();
    match shell.run_taken(command, &mut |line| lines.push(line.to_owned()))? {
        ProgramOutcome::Success => Ok(lines.join("\n")),
        outcome => Err(format!("{command:?}: {outcome:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = DistOptions::read(&["--binary", "b", "--out", "d"]).expect("legal");
        let expected = DistOptions {
            binary: Some("b"),
            dpdk: false,
            out: Some("d"),
        };
        assert_eq!(options, expected);
        assert!(DistOptions::read(&["--dpdk"]).expect("legal").dpdk);
        for words in [&["--rpm"][..], &["--out"], &["--dpdk", "--binary", "b"]] {
            assert!(DistOptions::read(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn package_variants_replace_each_other() {
        assert_eq!(
            relations(false, "1-1", "libc6"),
            "Depends: libc6, passwd\nConflicts: comporta-dpdk\nReplaces: comporta-dpdk\n"
        );
        let with = relations(true, "1-1", "libc6");
        for line in [
            "Provides: comporta (= 1-1)\n",
            "Conflicts: comporta\n",
            "Replaces: comporta\n",
        ] {
            assert!(with.contains(line), "{with}");
        }
    }

    #[test]
    fn version_line_names_dpdk_and_must_match() {
        let printed = |rest: &str| has_dpdk(&format!("comporta {VERSION}{rest}")).ok();
        assert_eq!(printed(""), Some(false));
        assert_eq!(printed(", with DPDK"), Some(true));
        assert_eq!(printed("9"), None);
        assert!(
            has_dpdk("bash 5").is_err_and(|error| error.to_string().contains("build it again"))
        );
    }
}
