//! What `cargo xtask dist` builds, installed by Debian's own dpkg: in a layer over this machine's
//! files, which vanishes with the processes in it, so that what is installed here stays as it is.

use std::path::{Path, PathBuf};
use std::{env, fs};

use testbed::{Failure, Process, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, program, project_file};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::TWO_PORTS;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    it_takes_open_vswitchs_place_and_gives_it_back,
    the_same_program_makes_the_same_packages,
    pages_render_and_completions_complete,
    systemd_understands_the_service,
    the_service_runs_by_its_example_and_with_no_more_rights_than_its_own,
];

/// What is done with packages, beside what all tests need.
const NEEDS: [Requirement; 4] = [
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

/// What systemd says of a unit.
const SYSTEMD: [Requirement; 1] = [Requirement::Program {
    program: "systemd-analyze",
    package: "systemd",
}];

fn check(needs: &[Requirement]) -> TestResult {
    testbed::check(needs).map_err(|missing| TestError::Skip(missing.to_string()))
}

/// Packages of the program that is tested.
struct Packages {
    /// The one with the program.
    comporta: PathBuf,
    /// The one that takes the daemon's place.
    vswitchd: PathBuf,
}

impl Packages {
    /// Builds them into a folder of this name. They are not compressed: nobody sends them
    /// anywhere.
    fn build(context: &TestContext, name: &str) -> Result<Self, TestError> {
        check(&NEEDS)?;
        let folder = context.directory().join(name);
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let program = testbed::Program::new(cargo)
            .args("run --quiet --package xtask -- dist --binary".split(' '))
            .arg(fs::canonicalize(comporta_binary())?)
            .arg("--out")
            .arg(&folder)
            .directory(project_file(""))
            .env("DPKG_DEB_COMPRESSOR_TYPE", "none");
        let told = CommandOutput::run_within(WAIT_LIMIT * 4, context, program)?.expect_success()?;
        let built = |start: &str| {
            let mut built = told
                .lines()
                .filter_map(|line| line.strip_prefix("package: "));
            let is_it = |path: &&str| {
                let name = path.rsplit('/').next().unwrap_or(path);
                name.strip_prefix(start)
                    .is_some_and(|rest| rest.starts_with('_'))
            };
            built.find(is_it).map(PathBuf::from)
        };
        let program = built("comporta").or_else(|| built("comporta-dpdk"));
        Ok(Self {
            comporta: program.ok_or("no package of the program")?,
            vswitchd: built("comporta-vswitchd").ok_or("no package of the daemon")?,
        })
    }

    /// What the package with the program is called.
    fn name(&self) -> String {
        let name = self
            .comporta
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        name.split('_').next().unwrap_or_default().to_owned()
    }

    /// Lays the files of the package with the program out, below a folder that is returned.
    fn lay_out(&self, context: &TestContext) -> Result<PathBuf, Failure> {
        let folder = context.directory().join("laid-out");
        let unpack = program("dpkg-deb --extract")
            .arg(&self.comporta)
            .arg(&folder);
        CommandOutput::run_within(WAIT_LIMIT * 2, context, unpack)?.expect_success()?;
        Ok(folder)
    }
}

/// Makes a layer over all files, and sleeps in it. What is mounted and is no file system of a
/// disk is mounted anew. Modules of the kernel, which Open vSwitch's scripts want to load, are
/// no matter to a switch in userspace. Who comes before the first process is in the layer, or
/// finds a way out of it, can write nothing: this machine's own files are read only there.
const ROOM: &str = r#"
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
exec chroot /mnt/root sh -c 'echo "$1" > "$2/room.pid"; exec sleep infinity' room "$pid" "$1"
"#;

/// A machine like this one, in the switch's namespace, in which everything may be changed.
struct Room<'r, 'g> {
    network: &'r TestNetwork<'g>,
    /// The first of its processes, by this machine's count.
    first: String,
    /// With it, all that was started in the room ends.
    _process: Process,
}

impl<'r, 'g> Room<'r, 'g> {
    fn new(network: &'r TestNetwork<'g>) -> Result<Self, Failure> {
        let context = network.context;
        let outside = program("unshare --mount --pid --fork --kill-child sh -c")
            .arg(ROOM)
            .arg("room")
            .arg(context.directory())
            .log(context.unique_path("room"))
            .inside(&network.switch_namespace);
        let mut process = context.spawner.start(outside)?;
        let file = context.directory().join("room.pid");
        let first = context.wait_for("the room", || {
            if !process.is_running() {
                let status = process.wait(WAIT_LIMIT)?;
                return Err(process.failed(status));
            }
            let told = fs::read_to_string(&file).unwrap_or_default();
            Ok(told.strip_suffix('\n').map(str::to_owned))
        })?;
        let room = Self {
            network,
            first,
            _process: process,
        };
        let kind = room.says("stat --file-system --format=%T /")?;
        assert_eq!(kind, "overlayfs\n", "this machine's own files must stay");
        Ok(room)
    }

    /// A program that is to run in it.
    fn program(&self, words: &str) -> testbed::Program<'_> {
        program("nsenter --mount --pid --root --wd=/ --target")
            .arg(&self.first)
            .arg("--")
            .args(words.split(' '))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .inside(&self.network.switch_namespace)
    }

    /// What a program says that runs in it; it must succeed.
    fn says(&self, words: &str) -> Result<String, Failure> {
        CommandOutput::run_within(WAIT_LIMIT * 3, self.network.context, self.program(words))?
            .expect_success()
    }

    /// Installs a package. What other packages do when files have come, such as to look through
    /// all manuals, is left out.
    fn install(&self, package: &Path) -> Result<(), Failure> {
        self.says(&format!(
            "dpkg --no-triggers --install {}",
            package.display()
        ))?;
        Ok(())
    }

    /// What runs by the name of ovs-vswitchd.
    fn chosen(&self) -> Result<String, Failure> {
        let told = self.says("update-alternatives --query ovs-vswitchd")?;
        let value = told.lines().find_map(|line| line.strip_prefix("Value: "));
        Ok(value.unwrap_or_default().to_owned())
    }

    /// Starts Open vSwitch as its services do.
    fn start(&self) -> Result<(), Failure> {
        self.says(&format!(
            "{CTL} start --system-id=random --no-record-hostname --no-mlockall"
        ))?;
        Ok(())
    }
}

/// What Open vSwitch's services call.
const CTL: &str = "/usr/share/openvswitch/scripts/ovs-ctl";

/// What this package has in the place of ovs-vswitchd.
const OURS: &str = "/usr/lib/comporta-vswitchd/ovs-vswitchd";

fn it_takes_open_vswitchs_place_and_gives_it_back(context: &TestContext) -> TestResult {
    let packages = Packages::build(context, "dist")?;
    let network = TestNetwork::new(context, 2)?;
    let room = Room::new(&network)?;
    room.says("update-alternatives --auto ovs-vswitchd")?;
    let theirs = room.chosen()?;
    assert!(!theirs.contains("comporta"), "{theirs}");
    room.install(&packages.comporta)?;
    assert_eq!(room.chosen()?, theirs, "the program alone takes no place");
    room.install(&packages.vswitchd)?;
    assert_eq!(room.chosen()?, OURS);

    room.start()?;
    let told = room.says("ovs-appctl version")?;
    assert!(told.starts_with("ovs-vswitchd (Comporta,"), "{told}");
    room.says(&format!("ovs-vsctl {TWO_PORTS}"))?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let told = room.says("ovs-vsctl get Open_vSwitch . ovs_version")?;
    assert!(told.contains("-comporta"), "{told}");
    room.says(&format!("{CTL} stop"))?;

    room.says("dpkg --no-triggers --remove comporta-vswitchd")?;
    assert_eq!(room.chosen()?, theirs);
    room.says("rm /etc/openvswitch/conf.db")?;
    room.start()?;
    let told = room.says("ovs-appctl version")?;
    assert!(told.starts_with("ovs-vswitchd (Open vSwitch)"), "{told}");
    room.says(&format!(
        "ovs-vsctl {TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
    ))?;
    one.ping_until_reply(two.address)?;
    room.says(&format!("{CTL} stop"))?;

    room.says(&format!("dpkg --no-triggers --purge {}", packages.name()))?;
    let left = room.says("find /etc/comporta /etc/default/comporta /usr/bin/comporta");
    let left = left.expect_err("nothing is there any more").to_string();
    assert_eq!(left.matches("No such file").count(), 3, "{left}");
    assert!(!Path::new(OURS).exists(), "this machine stays as it is");
    Ok(())
}

fn the_same_program_makes_the_same_packages(context: &TestContext) -> TestResult {
    let one = Packages::build(context, "one")?;
    let two = Packages::build(context, "two")?;
    assert!(fs::read(&one.comporta)? == fs::read(&two.comporta)?);
    assert!(fs::read(&one.vswitchd)? == fs::read(&two.vswitchd)?);
    Ok(())
}

fn pages_render_and_completions_complete(context: &TestContext) -> TestResult {
    let folder = Packages::build(context, "dist")?.lay_out(context)?;
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
        let ran = CommandOutput::run(context, render)?;
        assert_eq!(ran.stderr, "", "{}", page.display());
        let text = ran.expect_success()?;
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
    for (file, start) in [
        ("zsh/vendor-completions/_comporta", "#compdef comporta"),
        ("fish/vendor_completions.d/comporta.fish", "# Print"),
    ] {
        let text = fs::read_to_string(share.join(file))?;
        assert!(text.starts_with(start), "{file}: {}", &text[..200]);
    }
    Ok(())
}

/// The room with the program installed in it.
fn furnished<'r, 'g>(network: &'r TestNetwork<'g>) -> Result<Room<'r, 'g>, TestError> {
    let packages = Packages::build(network.context, "dist")?;
    let room = Room::new(network)?;
    room.install(&packages.comporta)?;
    Ok(room)
}

/// Where the package has the service.
const UNIT: &str = "/lib/systemd/system/comporta.service";

fn systemd_understands_the_service(context: &TestContext) -> TestResult {
    check(&SYSTEMD)?;
    let network = TestNetwork::new(context, 0)?;
    let room = furnished(&network)?;
    let verify = room.program(&format!("systemd-analyze verify --man=no {UNIT}"));
    let ran = CommandOutput::run(context, verify)?;
    let about = |line: &&str| line.contains("comporta");
    let complaints: Vec<_> = ran.stderr.lines().filter(about).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    ran.expect_success()?;
    // Nothing is started by itself.
    let wanted = room.says("find /etc/systemd -name comporta.service")?;
    assert_eq!(wanted, "");
    Ok(())
}

/// Puts into use what the example says, with the cables of the rig.
const TAKE_MARKS_AWAY: &str = r"s/^#\(\[\[\|[a-z-]* = \)/\1/; s/eth1/p1/; s/eth2=7/p2/";

fn the_service_runs_by_its_example_and_with_no_more_rights_than_its_own(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let room = furnished(&network)?;
    let configuration = "/etc/comporta/comporta.toml";
    let edit = room.program("sed -i");
    CommandOutput::run(context, edit.arg(TAKE_MARKS_AWAY).arg(configuration))?.expect_success()?;
    let unit = room.says(&format!("cat {UNIT}"))?;
    let value = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {unit}"))
            .to_owned()
    };
    let rights = value("CapabilityBoundingSet=")
        .to_lowercase()
        .replace("cap_", "+");
    let command = value("ExecStart=").replace("$COMPORTA_OPTS", "--cores 0");
    let words = format!(
        "setpriv --no-new-privs --bounding-set -all,{} {command}",
        rights.replace(' ', ",")
    );
    let log = context.unique_path("comporta.log");
    let mut switch = context.spawner.start(room.program(&words).log(&log))?;
    let (one, two) = network.host_pair();
    context.wait_until("the switch to be ready", || {
        let said = fs::read_to_string(&log).map_err(Failure::to("read the log"))?;
        if !switch.is_running() {
            let status = switch.wait(WAIT_LIMIT)?;
            return Err(switch.failed(status));
        }
        Ok(said.contains("INFO ready"))
    })?;
    one.ping_until_reply(two.address)?;
    let told = room.says("ovs-ofctl show br0")?;
    for port in ["(p1)", "(p2)", "(vm1)", "LOCAL(br0)"] {
        assert!(told.contains(port), "{told}");
    }
    Ok(())
}
