//! Installing what tests and demonstration need, on Debian. Says what it does
//! before it does it; says nothing if there is nothing to do.
//!
//! Not a provisioner: it adds packages by their names from wherever apt is set up
//! to look, and a Python environment below `target/`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::Failure;
use crate::counts::gungraun_version;
use crate::metadata::cargo;
use crate::shell::Shell;

/// The Debian package that has each program.
#[rustfmt::skip]
const PROGRAMS: [(&str, &str); 23] = [
    ("chromedriver",       "chromium-driver"),
    ("chromium",           "chromium"),
    ("ethtool",            "ethtool"),
    ("fping",              "fping"),
    ("ip",                 "iproute2"),
    ("tc",                 "iproute2"),
    ("tcpdump",            "tcpdump"),
    ("iperf3",             "iperf3"),
    ("man",                "man-db"),
    ("mn",                 "mininet"),
    ("ping",               "iputils-ping"),
    ("ovs-appctl",         "openvswitch-common"),
    ("ovs-ofctl",          "openvswitch-common"),
    ("ovsdb-server",       "openvswitch-common"),
    ("ovsdb-tool",         "openvswitch-common"),
    ("ovs-vsctl",          "openvswitch-switch"),
    ("ovs-vswitchd",       "openvswitch-switch"),
    ("ovs-testcontroller", "openvswitch-testcontroller"),
    ("ps",                 "procps"),
    ("python3",            "python3"),
    ("snmpd",              "snmpd"),
    ("tshark",             "tshark"),
    ("unshare",            "util-linux"),
];

/// Packages whose installation starts a service, which nothing here needs: tests
/// start their own daemons in their own namespaces, and a controller of the
/// system's would hold the port that they use.
const SERVICES: [&str; 3] = ["openvswitch-switch", "openvswitch-testcontroller", "snmpd"];

/// Where programs are, beside `PATH`: an ordinary user's lacks the system's folders.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A Python environment, and the file that says what it holds; from the project's root.
struct Venv {
    folder: &'static str,
    requirements: &'static str,
}

/// What the system tests need.
const FOR_TESTS: Venv = Venv {
    folder: "target/venv",
    requirements: "tests/requirements.txt",
};

/// What the conformance suites need: another os-ken, so an environment of their own.
const FOR_SUITES: Venv = Venv {
    folder: "target/venv-suites",
    requirements: "suites/requirements.txt",
};

/// What tests under Faucet need: it asks for an os-ken of its own.
const FOR_FAUCET: Venv = Venv {
    folder: "target/venv-faucet",
    requirements: "tests/faucet-requirements.txt",
};

/// Where cargo puts programs that it installs, from the project's root.
const TOOLS: &str = "target/tools";

/// What runs the benches that count instructions.
pub(crate) const RUNNER: &str = "target/tools/bin/gungraun-runner";

/// Installs what is missing of all that tests need.
pub(crate) fn all(shell: &mut Shell) -> Result<(), Failure> {
    run(shell)?;
    dpdk_peers(shell)?;
    packaging(shell)?;
    book(shell)?;
    counting(shell)
}

/// Installs what is missing of what ports of DPDK are built with: a library, the drivers
/// that it loads by name, and what finds it.
pub(crate) fn dpdk(shell: &mut Shell) -> Result<(), Failure> {
    match succeeds(Command::new("pkg-config").args(["--exists", "libdpdk"])) {
        true => Ok(()),
        false => install(shell, &["libdpdk-dev", "pkgconf"]),
    }
}

/// Installs what is missing of what packages are built with.
pub(crate) fn packaging(shell: &mut Shell) -> Result<(), Failure> {
    match is_there("dpkg-shlibdeps") && is_there("strip") {
        true => Ok(()),
        false => install(shell, &["binutils", "dpkg-dev"]),
    }
}

/// Installs what is missing of what counting instructions needs: the runner of the
/// version that the project's gungraun asks for.
pub(crate) fn counting(shell: &mut Shell) -> Result<(), Failure> {
    valgrind(shell)?;
    let version = gungraun_version(shell.root())?;
    tool(shell, "gungraun-runner", &version)
}

/// Installs mdBook, which builds the book of documents.
pub(crate) fn book(shell: &mut Shell) -> Result<(), Failure> {
    let features = ["--no-default-features", "--features", "search"];
    tool_with(shell, "mdbook", MDBOOK_VERSION, &features)
}

/// The version of mdBook, and its program.
const MDBOOK_VERSION: &str = "0.4.52";
pub(crate) const MDBOOK: &str = "target/tools/bin/mdbook";

/// The version of cargo-fuzz.
const FUZZ_VERSION: &str = "0.13.2";

/// Installs what is missing of what fuzzing needs: a compiler that can tell which code an
/// input reaches, as only the nightly ones can, and what runs it.
pub(crate) fn fuzzing(shell: &mut Shell) -> Result<(), Failure> {
    if !succeeds(Command::new("rustup").args(["run", NIGHTLY, "rustc", "--version"])) {
        println!("setup: installing the compiler `{NIGHTLY}`");
        let mut command = Command::new("rustup");
        command.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
        shell.succeed(&mut command)?;
    }
    tool(shell, "cargo-fuzz", FUZZ_VERSION)
}

const NIGHTLY: &str = "nightly";

/// cargo-fuzz, by the compiler that it needs. It asks `PATH` for cargo, and must not be told
/// of the one that runs this program.
pub(crate) fn cargo_fuzz(root: &Path) -> Command {
    let mut command = Command::new(root.join(TOOLS).join("bin/cargo-fuzz"));
    command.env("RUSTUP_TOOLCHAIN", NIGHTLY);
    for of_this_cargo in ["CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(of_this_cargo);
    }
    command
}

/// Builds a program of Rust of this version, if it is not there. It is built without
/// optimization: it waits for others most of the time.
fn tool(shell: &mut Shell, name: &str, version: &str) -> Result<(), Failure> {
    tool_with(shell, name, version, &[])
}

/// Builds a program with these options of `cargo install`, unless this version is installed.
fn tool_with(
    shell: &mut Shell,
    name: &str,
    version: &str,
    options: &[&str],
) -> Result<(), Failure> {
    let tools = shell.root().join(TOOLS);
    let list = fs::read_to_string(tools.join(".crates.toml"));
    let wanted = format!("\"{name} {version} ");
    if list.is_ok_and(|list| list.contains(&wanted)) && tools.join("bin").join(name).is_file() {
        return Ok(());
    }
    println!("setup: building {name} {version} into {TOOLS}");
    let mut command = Command::new(cargo());
    command
        .args(["install", name, "--version", version])
        .args(options)
        .args(["--locked", "--debug", "--quiet", "--root", TOOLS]);
    shell.succeed(&mut command)
}

/// Installs what is missing of what ports of DPDK are measured beside. Open vSwitch's daemon
/// with DPDK is asked for by its path: which one the machine starts stays as it is.
pub(crate) fn dpdk_peers(shell: &mut Shell) -> Result<(), Failure> {
    dpdk(shell)?;
    let peers = [
        ("dpdk-testpmd", "dpdk-dev"),
        (OVS_WITH_DPDK, "openvswitch-switch-dpdk"),
    ];
    let missing = peers.iter().filter(|(program, _)| !is_there(program));
    let missing: Vec<_> = missing.map(|(_, package)| *package).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => install(shell, &missing),
    }
}

/// Open vSwitch's daemon with DPDK, as Debian has it.
const OVS_WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Installs valgrind, if it is missing.
pub(crate) fn valgrind(shell: &mut Shell) -> Result<(), Failure> {
    match is_there("valgrind") {
        true => Ok(()),
        false => install(shell, &["valgrind"]),
    }
}

/// Installs the programs that the demonstration measures and measures with.
pub(crate) fn demonstration(shell: &mut Shell) -> Result<(), Failure> {
    let packages: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| DEMONSTRATION.contains(program) && !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    match packages.is_empty() {
        true => Ok(()),
        false => install(shell, &packages),
    }
}

/// The programs of the demonstration.
const DEMONSTRATION: [&str; 11] = [
    "ethtool",
    "ip",
    "iperf3",
    "ovs-appctl",
    "ovs-ofctl",
    "ovs-vsctl",
    "ovs-vswitchd",
    "ovsdb-server",
    "ovsdb-tool",
    "ps",
    "tc",
];

/// Installs what is missing of what demonstration and system tests need.
pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let missing = missing_packages();
    if !missing.is_empty() {
        install(shell, &missing)?;
    }
    make_venv(shell, &FOR_TESTS)?;
    make_venv(shell, &FOR_FAUCET)?;
    make_venv(shell, &FOR_SUITES)
}

/// The packages of all programs that are not there.
fn missing_packages() -> Vec<&'static str> {
    let mut missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    // The module that Debian leaves out of python3 and has in python3-venv.
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip"])) {
        missing.push("python3-venv");
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Whether `program` can be started.
fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(Into::into))
        .any(|folder| folder.join(program).is_file())
}

/// Whether `command` runs and ends well, in silence.
fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs Debian packages, and stops the services that came with them.
fn install(shell: &mut Shell, packages: &[&str]) -> Result<(), Failure> {
    let list = packages.join(" ");
    let may_install = fs::metadata("/proc/self").is_ok_and(|itself| itself.uid() == 0);
    if !may_install || !is_there("apt-get") {
        return Err(format!(
            "Debian packages are missing; as root: apt-get install --no-install-recommends {list}"
        )
        .into());
    }
    println!("setup: installing the Debian packages {list}");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-y"])
            .args(arguments);
        command
    };
    shell.succeed(&mut apt(&["update"]))?;
    shell.succeed(apt(&["install", "--no-install-recommends"]).args(packages))?;
    for service in SERVICES.iter().filter(|service| packages.contains(service)) {
        stop(shell, service)?;
    }
    Ok(())
}

/// Stops a service that the installation started, now and at the next boot. Where
/// no init runs, or a policy forbids it, nothing was started.
fn stop(shell: &mut Shell, service: &str) -> Result<(), Failure> {
    if !succeeds(Command::new("service").args([service, "status"])) {
        return Ok(());
    }
    println!(
        "setup: stopping the service {service}, which its package started and nothing here needs \
         (`update-rc.d {service} enable` and `service {service} start` bring it back)"
    );
    shell.succeed(Command::new("service").args([service, "stop"]))?;
    shell.succeed(Command::new("update-rc.d").args([service, "disable"]))
}

/// Makes a Python environment, if it does not hold what it should.
fn make_venv(shell: &mut Shell, venv: &Venv) -> Result<(), Failure> {
    let Venv {
        folder,
        requirements,
    } = venv;
    let wanted = fs::read_to_string(shell.root().join(requirements))
        .map_err(|error| format!("{requirements}: {error}"))?;
    // What was installed last, written when all of it was.
    let stamp = shell.root().join(folder).join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!(
        "setup: making the Python environment {folder} with {}",
        names(&wanted).join(" ")
    );
    shell.succeed(Command::new("python3").args(["-m", "venv", "--clear", folder]))?;
    let pip = Path::new(folder).join("bin/pip");
    let options = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ];
    let pip = shell.root().join(pip);
    shell.succeed(Command::new(pip).args(options).arg(requirements))?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(())
}

/// The packages that a requirements file names, without versions.
fn names(requirements: &str) -> Vec<&str> {
    requirements
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once("=="))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_named_without_versions() {
        assert_eq!(
            names("# all of it\nos-ken==4.2.2\nsix==1.17.0\n"),
            ["os-ken", "six"]
        );
    }

    #[test]
    fn a_program_is_there_or_not() {
        assert!(is_there("sh") && !is_there("no-such-program"));
    }
}
