//! Installs the dependencies of tests and demonstration on Debian: announces each installation, and
//! is silent if nothing is missing.
//!
//! It installs packages by name from the sources that apt is configured with, and creates Python
//! environments below `target/`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::TaskError;
use crate::counts::gungraun_version;
use crate::metadata::cargo;
use crate::shell::Shell;

/// The Debian package of each program, by its name or path.
#[rustfmt::skip]
const PROGRAMS: [(&str, &str); 38] = [
    ("/usr/lib/frr/bfdd",  "frr"),
    ("chromedriver",       "chromium-driver"),
    ("chromium",           "chromium"),
    ("conntrack",          "conntrack"),
    ("curl",               "curl"),
    ("ethtool",            "ethtool"),
    ("fping",              "fping"),
    ("ip",                 "iproute2"),
    ("tc",                 "iproute2"),
    ("tcpdump",            "tcpdump"),
    ("in.tftpd",           "tftpd-hpa"),
    ("iperf3",             "iperf3"),
    ("lldpd",              "lldpd"),
    ("man",                "man-db"),
    ("mn",                 "mininet"),
    ("nft",                "nftables"),
    ("nginx",              "nginx"),
    ("ping",               "iputils-ping"),
    ("ovs-appctl",         "openvswitch-common"),
    ("ovs-ofctl",          "openvswitch-common"),
    ("ovn-controller",     "ovn-host"),
    ("ovn-northd",         "ovn-central"),
    ("ovsdb-server",       "openvswitch-common"),
    ("ovsdb-tool",         "openvswitch-common"),
    ("ovs-vsctl",          "openvswitch-switch"),
    ("ovs-vswitchd",       "openvswitch-switch"),
    ("ovs-testcontroller", "openvswitch-testcontroller"),
    ("ps",                 "procps"),
    ("python3",            "python3"),
    ("snmpd",              "snmpd"),
    ("systemd-analyze",    "systemd"),
    ("tftp",               "tftp-hpa"),
    ("traceroute",         "traceroute"),
    ("tshark",             "tshark"),
    ("unshare",            "util-linux"),
    ("uuidgen",            "uuid-runtime"),
    ("vsftpd",             "vsftpd"),
    ("wrk",                "wrk"),
];

/// Packages that start a service when they are installed. Tests start their own daemons in their
/// own namespaces, and a system-wide controller would occupy their port.
const SERVICES: [&str; 10] = [
    "frr",
    "lldpd",
    "nginx",
    "openvswitch-switch",
    "openvswitch-testcontroller",
    "ovn-central",
    "ovn-host",
    "snmpd",
    "tftpd-hpa",
    "vsftpd",
];

/// Folders of programs in addition to `PATH`, which lacks them for ordinary users.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// A Python environment and its requirements file, from the project's root.
struct Venv {
    folder: &'static str,
    requirements: &'static str,
}

/// The environment of the system tests.
const FOR_TESTS: Venv = Venv {
    folder: "target/venv",
    requirements: "tests/requirements.txt",
};

/// The environment of the conformance suites, which need another version of os-ken.
const FOR_SUITES: Venv = Venv {
    folder: "target/venv-suites",
    requirements: "suites/requirements.txt",
};

/// The environment of Faucet, which pins its own os-ken.
const FOR_FAUCET: Venv = Venv {
    folder: "target/venv-faucet",
    requirements: "tests/faucet-requirements.txt",
};

/// The environment of Neutron's agent, whose rules are recorded.
const FOR_NEUTRON: Venv = Venv {
    folder: "target/venv-neutron",
    requirements: "bench/recorded/neutron-requirements.txt",
};

/// The folder of programs that cargo installs, from the project's root.
const TOOLS: &str = "target/tools";

/// The runner of the instruction counts.
pub(crate) const RUNNER: &str = "target/tools/bin/gungraun-runner";

/// Installs all dependencies of the tests.
pub(crate) fn all(shell: &mut Shell) -> Result<(), TaskError> {
    run(shell)?;
    dpdk_peers(shell)?;
    packaging(shell)?;
    autotest(shell)?;
    book(shell)?;
    counting(shell)
}

/// Installs Neutron's agent, which only `bench/recorded/record-neutron.py` starts, and the Open
/// vSwitch that it controls.
pub(crate) fn neutron(shell: &mut Shell) -> Result<(), TaskError> {
    let missing = missing_packages();
    if !missing.is_empty() {
        install(shell, &missing)?;
    }
    make_venv(shell, &FOR_NEUTRON)
}

/// Installs the sources of Open vSwitch, which include its autotest suite, and the program that
/// configures them.
pub(crate) fn autotest(shell: &mut Shell) -> Result<(), TaskError> {
    let mut missing = Vec::new();
    if !Path::new(OVS_SOURCES).is_file() {
        missing.push("openvswitch-source");
    }
    if !is_there("make") {
        missing.push("make");
    }
    match missing.is_empty() {
        true => Ok(()),
        false => install(shell, &missing),
    }
}

/// The sources of Open vSwitch, in Debian.
const OVS_SOURCES: &str = "/usr/src/openvswitch/openvswitch.tar.gz";

/// Installs the dependencies of DPDK ports: the library, the drivers that it loads by name, and
/// pkg-config.
pub(crate) fn dpdk(shell: &mut Shell) -> Result<(), TaskError> {
    match succeeds(Command::new("pkg-config").args(["--exists", "libdpdk"])) {
        true => Ok(()),
        false => install(shell, &["libdpdk-dev", "pkgconf"]),
    }
}

/// Installs the programs that build Debian packages.
pub(crate) fn packaging(shell: &mut Shell) -> Result<(), TaskError> {
    match is_there("dpkg-shlibdeps") && is_there("strip") {
        true => Ok(()),
        false => install(shell, &["binutils", "dpkg-dev"]),
    }
}

/// Installs valgrind and the runner of gungraun's version in the lock file.
pub(crate) fn counting(shell: &mut Shell) -> Result<(), TaskError> {
    valgrind(shell)?;
    let version = gungraun_version(shell.root())?;
    tool(shell, "gungraun-runner", &version)
}

/// Installs mdBook, which builds the book of documents.
pub(crate) fn book(shell: &mut Shell) -> Result<(), TaskError> {
    let features = ["--no-default-features", "--features", "search"];
    tool_with(shell, "mdbook", MDBOOK_VERSION, &features)
}

/// The version of mdBook, and its program.
const MDBOOK_VERSION: &str = "0.4.52";
pub(crate) const MDBOOK: &str = "target/tools/bin/mdbook";

/// Version of cargo-deny.
const DENY_VERSION: &str = "0.20.2";

/// Installs cargo-deny.
pub(crate) fn deny(shell: &mut Shell) -> Result<(), TaskError> {
    tool_with(
        shell,
        "cargo-deny",
        DENY_VERSION,
        &["--no-default-features"],
    )
}

/// Returns a cargo-deny command.
pub(crate) fn cargo_deny(root: &Path) -> Command {
    Command::new(root.join(TOOLS).join("bin/cargo-deny"))
}

/// Version of cargo-fuzz.
const FUZZ_VERSION: &str = "0.13.2";

/// Installs a nightly compiler, which fuzzing needs for coverage, and cargo-fuzz.
pub(crate) fn fuzzing(shell: &mut Shell) -> Result<(), TaskError> {
    nightly(shell, &[])?;
    tool(shell, "cargo-fuzz", FUZZ_VERSION)
}

/// Installs a nightly compiler with these components.
pub(crate) fn nightly(shell: &mut Shell, components: &[&str]) -> Result<(), TaskError> {
    if !succeeds(Command::new("rustup").args(["run", NIGHTLY, "rustc", "--version"])) {
        println!("setup: installing the compiler `{NIGHTLY}`");
        let mut command = Command::new("rustup");
        command.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
        shell.succeed(&mut command)?;
    }
    if components.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("rustup");
    command.args(["component", "add", "--toolchain", NIGHTLY]);
    shell.succeed(command.args(components))
}

const NIGHTLY: &str = "nightly";

/// Returns a cargo-fuzz command with the nightly compiler. It takes cargo from `PATH`, so the
/// variables of the running cargo are removed.
pub(crate) fn cargo_fuzz(root: &Path) -> Command {
    let mut command = Command::new(root.join(TOOLS).join("bin/cargo-fuzz"));
    of_nightly(&mut command);
    command
}

/// Returns a cargo command with the nightly compiler.
pub(crate) fn nightly_cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    of_nightly(&mut command);
    command.args(arguments);
    command
}

fn of_nightly(command: &mut Command) {
    command.env("RUSTUP_TOOLCHAIN", NIGHTLY);
    for of_this_cargo in ["CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(of_this_cargo);
    }
}

/// Builds this version of a Rust program unless it is installed; unoptimized, since it mostly waits
/// for others.
fn tool(shell: &mut Shell, name: &str, version: &str) -> Result<(), TaskError> {
    tool_with(shell, name, version, &[])
}

/// Builds a program with these options of `cargo install`, unless this version is installed.
fn tool_with(
    shell: &mut Shell,
    name: &str,
    version: &str,
    options: &[&str],
) -> Result<(), TaskError> {
    let tools = shell.root().join(TOOLS);
    let list = fs::read_to_string(tools.join(".crates.toml"));
    let required = format!("\"{name} {version} ");
    if list.is_ok_and(|list| list.contains(&required)) && tools.join("bin").join(name).is_file() {
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

/// Installs the peers of DPDK measurements. Open vSwitch's daemon with DPDK is started by its path,
/// so the system's choice of daemon stays.
pub(crate) fn dpdk_peers(shell: &mut Shell) -> Result<(), TaskError> {
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

/// Open vSwitch's daemon with DPDK, in Debian.
const OVS_WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Installs valgrind.
pub(crate) fn valgrind(shell: &mut Shell) -> Result<(), TaskError> {
    match is_there("valgrind") {
        true => Ok(()),
        false => install(shell, &["valgrind"]),
    }
}

/// Installs the programs of the demonstration.
pub(crate) fn demonstration(shell: &mut Shell) -> Result<(), TaskError> {
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

/// Installs the dependencies of the system tests.
pub(crate) fn run(shell: &mut Shell) -> Result<(), TaskError> {
    let missing = missing_packages();
    if !missing.is_empty() {
        install(shell, &missing)?;
    }
    make_venv(shell, &FOR_TESTS)?;
    make_venv(shell, &FOR_FAUCET)?;
    make_venv(shell, &FOR_SUITES)
}

/// Returns the packages of all missing programs.
fn missing_packages() -> Vec<&'static str> {
    let mut missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    // Debian ships this module in python3-venv and not in python3.
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip"])) {
        missing.push("python3-venv");
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// True if `program` is in a folder of programs.
fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(Into::into))
        .any(|folder| folder.join(program).is_file())
}

/// True if `command` succeeds. Its output is discarded.
fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs Debian packages, and stops their services.
fn install(shell: &mut Shell, packages: &[&str]) -> Result<(), TaskError> {
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

/// Stops a service that its installation started, now and at the next boot. Without an init system,
/// or where a policy forbids it, no service was started.
fn stop(shell: &mut Shell, service: &str) -> Result<(), TaskError> {
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

/// Creates a Python environment unless it has the required packages.
fn make_venv(shell: &mut Shell, venv: &Venv) -> Result<(), TaskError> {
    let Venv {
        folder,
        requirements,
    } = venv;
    let required = fs::read_to_string(shell.root().join(requirements))
        .map_err(|error| format!("{requirements}: {error}"))?;
    // The requirements of the last complete installation.
    let stamp = shell.root().join(folder).join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == required) {
        return Ok(());
    }
    println!(
        "setup: making the Python environment {folder} with {}",
        names(&required).join(" ")
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
    fs::write(&stamp, required).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(())
}

/// Returns the packages of a requirements file, without versions.
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
    fn program_lookup_finds_sh() {
        assert!(is_there("sh") && !is_there("no-such-program"));
    }
}
