//! Debian packages of `cargo xtask dist`, installed by Debian's dpkg into an overlay over this machine's
//! files. The overlay ends with its processes, so that the machine's own installation is not
//! modified.

use std::path::{Path, PathBuf};
use std::{env, fs};

use testbed::{Failure, Process, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, program, project_file};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::TWO_PORTS;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    package_replaces_ovs_vswitchd_until_it_is_removed,
    packages_are_reproducible,
    manual_pages_render_and_completions_work,
    systemd_accepts_the_unit_file,
    service_runs_with_its_example_and_capabilities,
    unit_exposes_no_more_than_two_of_ten,
];

/// Requirements in addition to those of all tests.
const REQUIREMENTS: [Requirement; 4] = [
    Requirement::Program {
        program: "dpkg-shlibdeps",
        package: "dpkg-dev",
    },
    Requirement::Program {
        program: "ovs-vsctl",
        package: "openvswitch-switch",
    },
    Requirement::Program {
        program: "nsenter",
        package: "util-linux",
    },
    Requirement::Program {
        program: "man",
        package: "man-db",
    },
];

/// Requirement of the check of a unit file.
const SYSTEMD: [Requirement; 1] = [Requirement::Program {
    program: "systemd-analyze",
    package: "systemd",
}];

fn skip_unless_available(requirements: &[Requirement]) -> TestResult {
    testbed::check(requirements).map_err(|missing| TestError::Skip(missing.to_string()))
}

/// Debian packages of the tested program.
pub(super) struct DebianPackages {
    /// Package with the program.
    pub(super) comporta: PathBuf,
    /// Package that replaces ovs-vswitchd.
    pub(super) vswitchd: PathBuf,
}

impl DebianPackages {
    /// Builds the packages into a folder of this name, without compression.
    pub(super) fn build(context: &TestContext, name: &str) -> Result<Self, TestError> {
        skip_unless_available(&REQUIREMENTS)?;
        let folder = context.directory().join(name);
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let program = testbed::Program::new(cargo)
            .args("run --quiet --package xtask -- dist --binary".split(' '))
            .arg(fs::canonicalize(comporta_binary())?)
            .arg("--out")
            .arg(&folder)
            .directory(project_file(""))
            .env("DPKG_DEB_COMPRESSOR_TYPE", "none");
        let output =
            CommandOutput::run_within(WAIT_LIMIT * 4, context, program)?.expect_success()?;
        let package = |prefix: &str| {
            let mut packages = output
                .lines()
                .filter_map(|line| line.strip_prefix("package: "));
            let is_it = |path: &&str| {
                let name = path.rsplit('/').next().unwrap_or(path);
                name.strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with('_'))
            };
            packages.find(is_it).map(PathBuf::from)
        };
        let program = package("comporta").or_else(|| package("comporta-dpdk"));
        Ok(Self {
            comporta: program.ok_or("the build has no package of the program")?,
            vswitchd: package("comporta-vswitchd")
                .ok_or("the build has no package of the daemon")?,
        })
    }

    /// Name of the package with the program.
    fn name(&self) -> String {
        let name = self
            .comporta
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        name.split('_').next().unwrap_or_default().to_owned()
    }

    /// Extracts the package with the program, and returns the folder.
    fn extract(&self, context: &TestContext) -> Result<PathBuf, Failure> {
        let folder = context.directory().join("extracted");
        let unpack = program("dpkg-deb --extract")
            .arg(&self.comporta)
            .arg(&folder);
        CommandOutput::run_within(WAIT_LIMIT * 2, context, unpack)?.expect_success()?;
        Ok(folder)
    }
}

/// Script that mounts an overlay over all files and sleeps in it. File systems without a disk are
/// mounted again. Kernel modules, which Open vSwitch's scripts load, are not needed by a switch in
/// userspace. The machine's own files are read-only in the mount namespace, also for processes that
/// enter before the overlay exists or leave it.
const OVERLAY_SCRIPT: &str = r#"
set -e
read -r pid rest < /proc/self/stat
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
mount -t sysfs sysfs /mnt/root/sys
mkdir -p "/mnt/root$1"
mount --bind "$1" "/mnt/root$1"
mount --bind /bin/true /mnt/root/usr/share/openvswitch/scripts/ovs-kmod-ctl
rm -rf /mnt/root/run/openvswitch /mnt/root/var/lib/openvswitch /mnt/root/etc/openvswitch/*conf.db*
mkdir -p /mnt/root/var/lib/openvswitch /mnt/root/var/log/openvswitch
mount -o remount,bind,ro /
exec chroot /mnt/root sh -c 'echo "$1" > "$2/overlay.pid"; exec sleep infinity' overlay "$pid" "$1"
"#;

/// A writable overlay of this machine, in the switch's network namespace.
pub(super) struct Overlay<'r, 'g> {
    network: &'r TestNetwork<'g>,
    /// Process id of its first process, outside of the overlay's pid namespace.
    first_pid: String,
    /// Its end ends all processes of the overlay.
    _process: Process,
}

impl<'r, 'g> Overlay<'r, 'g> {
    pub(super) fn new(network: &'r TestNetwork<'g>) -> Result<Self, Failure> {
        let context = network.context;
        let program = program("unshare --mount --pid --fork --kill-child sh -c")
            .arg(OVERLAY_SCRIPT)
            .arg("overlay")
            .arg(context.directory())
            .log(context.unique_path("overlay"))
            .inside(&network.switch_namespace);
        let mut process = context.spawner.start(program)?;
        let file = context.directory().join("overlay.pid");
        let first_pid = context.wait_for("the overlay", || {
            if !process.is_running() {
                let status = process.wait(WAIT_LIMIT)?;
                return Err(process.failed(status));
            }
            let text = fs::read_to_string(&file).unwrap_or_default();
            Ok(text.strip_suffix('\n').map(str::to_owned))
        })?;
        let overlay = Self {
            network,
            first_pid,
            _process: process,
        };
        let file_system = overlay.run("stat --file-system --format=%T /")?;
        assert_eq!(
            file_system, "overlayfs\n",
            "the machine's own files must not change"
        );
        Ok(overlay)
    }

    /// A program in the overlay.
    fn program(&self, words: &str) -> testbed::Program<'_> {
        program("nsenter --mount --pid --root --wd=/ --target")
            .arg(&self.first_pid)
            .arg("--")
            .args(words.split(' '))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .inside(&self.network.switch_namespace)
    }

    /// Runs a program in the overlay, which must succeed, and returns its standard output.
    pub(super) fn run(&self, words: &str) -> Result<String, Failure> {
        CommandOutput::run_within(WAIT_LIMIT * 3, self.network.context, self.program(words))?
            .expect_success()
    }

    /// Installs a package without triggers of other packages, such as the index of manual pages.
    pub(super) fn install(&self, package: &Path) -> Result<(), Failure> {
        self.run(&format!(
            "dpkg --no-triggers --install {}",
            package.display()
        ))?;
        Ok(())
    }

    /// Path of the alternative `ovs-vswitchd`.
    fn alternative(&self) -> Result<String, Failure> {
        let output = self.run("update-alternatives --query ovs-vswitchd")?;
        let value = output.lines().find_map(|line| line.strip_prefix("Value: "));
        Ok(value.unwrap_or_default().to_owned())
    }

    /// Starts Open vSwitch as its services do.
    pub(super) fn start_services(&self) -> Result<(), Failure> {
        self.run(&format!(
            "{OVS_CTL} start --system-id=random --no-record-hostname --no-mlockall"
        ))?;
        Ok(())
    }
}

/// Script that Open vSwitch's services call.
pub(super) const OVS_CTL: &str = "/usr/share/openvswitch/scripts/ovs-ctl";

/// Path of Comporta's alternative for `ovs-vswitchd`.
const COMPORTA_ALTERNATIVE: &str = "/usr/lib/comporta-vswitchd/ovs-vswitchd";

fn package_replaces_ovs_vswitchd_until_it_is_removed(context: &TestContext) -> TestResult {
    let packages = DebianPackages::build(context, "dist")?;
    let network = TestNetwork::new(context, 2)?;
    let overlay = Overlay::new(&network)?;
    overlay.run("update-alternatives --auto ovs-vswitchd")?;
    let ovs_alternative = overlay.alternative()?;
    assert!(!ovs_alternative.contains("comporta"), "{ovs_alternative}");
    overlay.install(&packages.comporta)?;
    assert_eq!(
        overlay.alternative()?,
        ovs_alternative,
        "the program alone is no alternative"
    );
    overlay.install(&packages.vswitchd)?;
    assert_eq!(overlay.alternative()?, COMPORTA_ALTERNATIVE);

    overlay.start_services()?;
    let output = overlay.run("ovs-appctl version")?;
    assert!(output.starts_with("ovs-vswitchd (Comporta,"), "{output}");
    overlay.run(&format!("ovs-vsctl {TWO_PORTS}"))?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let output = overlay.run("ovs-vsctl get Open_vSwitch . ovs_version")?;
    assert!(output.contains("-comporta"), "{output}");
    overlay.run(&format!("{OVS_CTL} stop"))?;

    overlay.run("dpkg --no-triggers --remove comporta-vswitchd")?;
    assert_eq!(overlay.alternative()?, ovs_alternative);
    overlay.run("rm /etc/openvswitch/conf.db")?;
    overlay.start_services()?;
    let output = overlay.run("ovs-appctl version")?;
    assert!(
        output.starts_with("ovs-vswitchd (Open vSwitch)"),
        "{output}"
    );
    overlay.run(&format!(
        "ovs-vsctl {TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
    ))?;
    one.ping_until_reply(two.address)?;
    overlay.run(&format!("{OVS_CTL} stop"))?;

    overlay.run(&format!("dpkg --no-triggers --purge {}", packages.name()))?;
    let error = overlay.run("find /etc/comporta /etc/default/comporta /usr/bin/comporta");
    let error = error.expect_err("a purge removes all files").to_string();
    assert_eq!(error.matches("No such file").count(), 3, "{error}");
    assert!(
        !Path::new(COMPORTA_ALTERNATIVE).exists(),
        "the machine's own files must not change"
    );
    Ok(())
}

fn packages_are_reproducible(context: &TestContext) -> TestResult {
    let one = DebianPackages::build(context, "one")?;
    let two = DebianPackages::build(context, "two")?;
    assert!(fs::read(&one.comporta)? == fs::read(&two.comporta)?);
    assert!(fs::read(&one.vswitchd)? == fs::read(&two.vswitchd)?);
    Ok(())
}

fn manual_pages_render_and_completions_work(context: &TestContext) -> TestResult {
    let folder = DebianPackages::build(context, "dist")?.extract(context)?;
    let mut pages = Vec::new();
    for page in fs::read_dir(folder.join("usr/share/man/man1"))? {
        pages.push(page?.path());
    }
    assert!(pages.len() > 25, "{pages:?}");
    for page in pages {
        let render = program("man --warnings --encoding=UTF-8 --local-file")
            .arg(&page)
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8");
        let result = CommandOutput::run(context, render)?;
        assert_eq!(result.stderr, "", "{}", page.display());
        let text = result.expect_success()?;
        for title in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"] {
            assert!(text.contains(title), "{}: {text}", page.display());
        }
    }
    let share = folder.join("usr/share");
    let script = share.join("bash-completion/completions/comporta");
    let complete = "set -e; bash -n \"$1\"; . \"$1\"; COMP_WORDS=(comporta fl); COMP_CWORD=1; \
                    _comporta comporta fl comporta; echo \"${COMPREPLY[@]}\"";
    let bash = program("bash -c").arg(complete).arg("bash").arg(&script);
    assert_eq!(
        CommandOutput::run(context, bash)?.expect_success()?.trim(),
        "flows"
    );
    for (file, beginning) in [
        ("zsh/vendor-completions/_comporta", "#compdef comporta"),
        ("fish/vendor_completions.d/comporta.fish", "# Print"),
    ] {
        let text = fs::read_to_string(share.join(file))?;
        assert!(text.starts_with(beginning), "{file}: {}", &text[..200]);
    }
    Ok(())
}

/// An overlay with the program installed.
fn installed_overlay<'r, 'g>(network: &'r TestNetwork<'g>) -> Result<Overlay<'r, 'g>, TestError> {
    let packages = DebianPackages::build(network.context, "dist")?;
    let overlay = Overlay::new(network)?;
    overlay.install(&packages.comporta)?;
    Ok(overlay)
}

/// Path of the unit file in the package.
const UNIT: &str = "/lib/systemd/system/comporta.service";

fn systemd_accepts_the_unit_file(context: &TestContext) -> TestResult {
    skip_unless_available(&SYSTEMD)?;
    let network = TestNetwork::new(context, 0)?;
    let overlay = installed_overlay(&network)?;
    let verify = overlay.program(&format!("systemd-analyze verify --man=no {UNIT}"));
    let result = CommandOutput::run(context, verify)?;
    let is_about_comporta = |line: &&str| line.contains("comporta");
    let complaints: Vec<_> = result.stderr.lines().filter(is_about_comporta).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    result.expect_success()?;
    // The package enables no service.
    let enabled = overlay.run("find /etc/systemd -name comporta.service")?;
    assert_eq!(enabled, "");
    Ok(())
}

/// The exposure that `systemd-analyze security` may report for the unit, in tenths.
const EXPOSURE_MAX: &str = "20";

/// The unit under a name that has no further files.
const PLAIN_UNIT: &str = "/run/plain/alone.service";

fn unit_exposes_no_more_than_two_of_ten(context: &TestContext) -> TestResult {
    skip_unless_available(&SYSTEMD)?;
    let network = TestNetwork::new(context, 0)?;
    let overlay = installed_overlay(&network)?;
    // A build with DPDK adds a file that gives rights back to the unit of this name.
    overlay.run(&format!("install -D {UNIT} {PLAIN_UNIT}"))?;
    let words =
        format!("systemd-analyze security --offline=true --threshold={EXPOSURE_MAX} {PLAIN_UNIT}");
    let result = CommandOutput::run(context, overlay.program(&words))?;
    let overall = result.stdout.lines().find(|line| line.contains("Overall"));
    assert!(overall.is_some(), "{} {}", result.stdout, result.stderr);
    result.expect_success()?;
    let user = overlay.run("getent passwd comporta")?;
    assert!(user.contains("/usr/sbin/nologin"), "{user}");
    Ok(())
}

/// Script of `sed` that uncomments the example configuration and sets the network's interfaces.
const UNCOMMENT: &str = r"s/^#\(\[\[\|[a-z-]* = \)/\1/; s/eth1/p1/; s/eth2=7/p2/";

fn service_runs_with_its_example_and_capabilities(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let overlay = installed_overlay(&network)?;
    let configuration = "/etc/comporta/comporta.toml";
    let edit = overlay.program("sed -i");
    CommandOutput::run(context, edit.arg(UNCOMMENT).arg(configuration))?.expect_success()?;
    let unit = overlay.run(&format!("cat {UNIT}"))?;
    let value = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {unit}"))
            .to_owned()
    };
    let capabilities = value("CapabilityBoundingSet=")
        .to_lowercase()
        .replace("cap_", "+");
    let command = value("ExecStart=").replace("$COMPORTA_OPTS", "--cores 0");
    let words = format!(
        "setpriv --no-new-privs --bounding-set -all,{} {command}",
        capabilities.replace(' ', ",")
    );
    let log = context.unique_path("comporta.log");
    let mut switch = context.spawner.start(overlay.program(&words).log(&log))?;
    let (one, two) = network.host_pair();
    context.wait_until("the switch to be ready", || {
        let text = fs::read_to_string(&log).map_err(Failure::to("read the log"))?;
        if !switch.is_running() {
            let status = switch.wait(WAIT_LIMIT)?;
            return Err(switch.failed(status));
        }
        Ok(text.contains("INFO ready"))
    })?;
    one.ping_until_reply(two.address)?;
    let output = overlay.run("ovs-ofctl show br0")?;
    for port in ["(p1)", "(p2)", "(vm1)", "LOCAL(br0)"] {
        assert!(output.contains(port), "{output}");
    }
    Ok(())
}
