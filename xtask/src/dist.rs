//! `cargo xtask dist`: Debian packages of the program, staged as trees and built by Debian's own
//! programs.
//!
//! - `comporta` has the program, its manual, its completions and a service that waits to be
//!   configured. It changes nothing of what runs.
//! - `comporta-dpdk` is the same of a program that has ports of DPDK, in its place.
//! - `comporta-vswitchd` makes the program the one called ovs-vswitchd, beside Debian's
//!   `openvswitch-switch`.
//!
//! The same program and the same commit make the same bytes. The texts of the packages are in
//! `contrib/debian`; here is what goes where.

mod notices;
mod stage;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use stage::{Compressed, Stage};

use crate::metadata::cargo;
use crate::shell::{Outcome, Shell};
use crate::{Failure, setup};

/// The packages' texts, from the project's root.
const TEXTS: &str = "contrib/debian";

/// The number of the version, which the whole workspace has.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a package is called that has the program, without DPDK and with it.
const PLAIN: &str = "comporta";
const WITH_DPDK: &str = "comporta-dpdk";

/// The package that takes the place of Open vSwitch's daemon.
const VSWITCHD: &str = "comporta-vswitchd";

/// Documents, from the project's root, and what they are called below the package's folder
/// of documents. Long ones are compressed.
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

/// For each shell, where its completions are looked for.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/comporta"),
    ("zsh", "usr/share/zsh/vendor-completions/_comporta"),
    ("fish", "usr/share/fish/vendor_completions.d/comporta.fish"),
];

/// What was asked for.
#[derive(Debug, Default, PartialEq)]
struct Asked<'a> {
    /// A program that is there, in place of one that is built.
    binary: Option<&'a str>,
    /// Whether one that is built has ports of DPDK.
    dpdk: bool,
    /// Where packages go, if not to `target/dist`.
    out: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(words: &[&'a str]) -> Result<Self, Failure> {
        let mut asked = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--dpdk" => asked.dpdk = true,
                "--binary" => asked.binary = Some(words.next().ok_or("--binary wants a program")?),
                "--out" => asked.out = Some(words.next().ok_or("--out wants a directory")?),
                word => {
                    let all = "--dpdk, --binary FILE and --out DIRECTORY are all there is";
                    return Err(format!("unknown option `{word}`: {all}").into());
                }
            }
        }
        if asked.dpdk && asked.binary.is_some() {
            return Err(
                "--binary names a program: leave --dpdk out, which is for building one".into(),
            );
        }
        Ok(asked)
    }
}

/// What all packages of one call have in common.
struct Release {
    /// The folder that packages and their trees are made in.
    out: PathBuf,
    version: String,
    maintainer: String,
    architecture: String,
    /// The moment that all files bear, in seconds since 1970.
    moment: String,
    /// The program.
    binary: PathBuf,
    /// Whether it has ports of DPDK.
    dpdk: bool,
}

/// Builds the packages.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, Failure> {
    let asked = Asked::read(words)?;
    setup::packaging(shell)?;
    let binary = match asked.binary {
        Some(path) => shell.root().join(path),
        None => build(shell, asked.dpdk)?,
    };
    let out = shell.root().join(asked.out.unwrap_or("target/dist"));
    let release = Release::of(shell, binary, out)?;
    let trees = [release.program(shell)?, release.vswitchd(shell)?];
    for stage in trees {
        let package = stage.build(shell, &release.out, &release.moment)?;
        println!("package: {}", package.display());
    }
    fs::remove_dir_all(release.out.join("stage"))?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the program as users get it.
fn build(shell: &mut Shell, dpdk: bool) -> Result<PathBuf, Failure> {
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
    fn of(shell: &mut Shell, binary: PathBuf, out: PathBuf) -> Result<Self, Failure> {
        let told = said(shell, Command::new(&binary).arg("--version"))?;
        let dpdk = has_dpdk(&told)?;
        fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        Ok(Self {
            out,
            version: format!("{VERSION}-1"),
            maintainer: maintainer(shell)?,
            architecture: said(shell, Command::new("dpkg").arg("--print-architecture"))?,
            moment: moment(shell)?,
            binary,
            dpdk,
        })
    }

    /// What the package with the program is called.
    const fn name(&self) -> &'static str {
        match self.dpdk {
            true => WITH_DPDK,
            false => PLAIN,
        }
    }

    /// A text of `contrib/debian` with this release's words in it.
    fn text(&self, shell: &Shell, name: &str) -> Result<String, Failure> {
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

    /// A tree with what each package has: its changes, its licence.
    fn stage(&self, shell: &mut Shell, package: &str) -> Result<Stage, Failure> {
        let mut stage = Stage::new(&self.out.join("stage").join(package), package)?;
        let documents = format!("usr/share/doc/{package}");
        let date = format!("--date=@{}", self.moment);
        let date = said(
            shell,
            Command::new("date").args(["--utc", "--rfc-email", &date]),
        )?;
        let changes = format!(
            "comporta ({}) unstable; urgency=medium\n\n  * What is new in this version is told in the changelog of the program.\n\n -- {}  {date}\n",
            self.version, self.maintainer
        );
        stage.put(&format!("{documents}/changelog.Debian"), changes, 0o644)?;
        stage.compress(Compressed::Always);
        let licence = self.text(shell, "copyright")?;
        stage.put(&format!("{documents}/copyright"), licence, 0o644)?;
        Ok(stage)
    }

    /// The tree of the package with the program.
    fn program(&self, shell: &mut Shell) -> Result<Stage, Failure> {
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
            stage.compress(Compressed::of(to));
        }
        let notices = notices::text(shell.root(), self.dpdk)?;
        stage.put(&format!("{documents}/notices"), notices, 0o644)?;
        stage.compress(Compressed::Always);
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

    /// What the program tells of itself: its manual and its completions.
    fn manual(&self, shell: &mut Shell, stage: &mut Stage) -> Result<(), Failure> {
        let date = format!("--date=@{}", self.moment);
        let date = said(shell, Command::new("date").args(["--utc", &date, "+%F"]))?;
        let pages = stage.directory("usr/share/man/man1")?;
        let mut man = Command::new(&self.binary);
        man.arg("man").arg(&pages).args(["--date", &date]);
        shell.succeed(&mut man)?;
        stage.compress_all(&pages)?;
        for (name, place) in COMPLETIONS {
            let script = said(
                shell,
                Command::new(&self.binary).args(["completions", name]),
            )?;
            stage.put(place, script + "\n", 0o644)?;
        }
        Ok(())
    }

    /// The service that waits to be configured.
    fn service(&self, shell: &Shell, stage: &mut Stage) -> Result<(), Failure> {
        let units = "lib/systemd/system";
        let mut put = |name: &str, place: &str| {
            let text = self.text(shell, name)?;
            stage.put(place, text, 0o644)
        };
        put("comporta.service", &format!("{units}/comporta.service"))?;
        if self.dpdk {
            put(
                "dpdk.conf",
                &format!("{units}/comporta.service.d/dpdk.conf"),
            )?;
        }
        put("comporta.toml", "etc/comporta/comporta.toml")?;
        put("comporta.default", "etc/default/comporta")
    }

    /// The tree of the package that takes the daemon's place.
    fn vswitchd(&self, shell: &mut Shell) -> Result<Stage, Failure> {
        let mut stage = self.stage(shell, VSWITCHD)?;
        // It knows by its name what it is to be.
        let name = format!("usr/lib/{VSWITCHD}/ovs-vswitchd");
        stage.link(&name, "../../bin/comporta")?;
        let told = self.text(shell, "README.Debian")?;
        stage.put(
            &format!("usr/share/doc/{VSWITCHD}/README.Debian"),
            told,
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

/// What the package with the program needs, and what it is there in place of: with ports of DPDK
/// or without, there is one of both.
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
    format!("Depends: {libraries}\n{more}Conflicts: {other}\nReplaces: {other}\n")
}

/// Whether a program that says this of itself has ports of DPDK; it must be of this version.
fn has_dpdk(told: &str) -> Result<bool, Failure> {
    match told.strip_prefix(&format!("comporta {VERSION}")) {
        Some("") => Ok(false),
        Some(", with DPDK") => Ok(true),
        _ => Err(format!(
            "the program calls itself `{told}`, and what is packaged is comporta {VERSION}: build it anew"
        )
        .into()),
    }
}

/// The moment that files bear: the last commit's, or what `SOURCE_DATE_EPOCH` says.
fn moment(shell: &mut Shell) -> Result<String, Failure> {
    match env::var("SOURCE_DATE_EPOCH") {
        Ok(moment) => Ok(moment),
        Err(_) => said(
            shell,
            Command::new("git").args(["log", "-1", "--format=%ct"]),
        ),
    }
}

/// Who answers for the packages: as Debian's tools are told it, or who made the last commit.
fn maintainer(shell: &mut Shell) -> Result<String, Failure> {
    match (env::var("DEBFULLNAME"), env::var("DEBEMAIL")) {
        (Ok(name), Ok(address)) => Ok(format!("{name} <{address}>")),
        _ => said(
            shell,
            Command::new("git").args(["log", "-1", "--format=%an <%ae>"]),
        ),
    }
}

/// The packages that have the libraries that `program` is linked to.
fn libraries(shell: &mut Shell, folder: &Path, program: &Path) -> Result<String, Failure> {
    // dpkg-shlibdeps wants a source package around it.
    let debian = folder.join("debian");
    fs::create_dir_all(&debian)?;
    let source = "Source: comporta\n\nPackage: comporta\nArchitecture: any\n";
    fs::write(debian.join("control"), source)?;
    let mut command = Command::new("env");
    command.arg("-C").arg(folder);
    command.args(["dpkg-shlibdeps", "-O"]).arg(program);
    let told = said(shell, &mut command)?;
    let found = told
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(found.ok_or("dpkg-shlibdeps tells no packages")?.to_owned())
}

/// What a program prints, which has to end well.
fn said(shell: &mut Shell, command: &mut Command) -> Result<String, Failure> {
    let mut lines = Vec::new();
    match shell.run_taken(command, &mut |line| lines.push(line.to_owned()))? {
        Outcome::Success => Ok(lines.join("\n")),
        outcome => Err(format!("{command:?}: {outcome:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let asked = Asked::read(&["--binary", "b", "--out", "d"]).expect("legal");
        let wanted = Asked {
            binary: Some("b"),
            dpdk: false,
            out: Some("d"),
        };
        assert_eq!(asked, wanted);
        assert!(Asked::read(&["--dpdk"]).expect("legal").dpdk);
        for words in [&["--rpm"][..], &["--out"], &["--dpdk", "--binary", "b"]] {
            assert!(Asked::read(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn each_variant_stands_in_for_the_other() {
        assert_eq!(
            relations(false, "1-1", "libc6"),
            "Depends: libc6\nConflicts: comporta-dpdk\nReplaces: comporta-dpdk\n"
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
    fn a_program_says_whether_it_has_dpdk_and_is_of_this_version() {
        let told = |rest: &str| has_dpdk(&format!("comporta {VERSION}{rest}")).ok();
        assert_eq!(told(""), Some(false));
        assert_eq!(told(", with DPDK"), Some(true));
        assert_eq!(told("9"), None);
        assert!(has_dpdk("bash 5").is_err_and(|error| error.to_string().contains("build it anew")));
    }
}
