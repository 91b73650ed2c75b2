//! The arguments of `comporta vswitchd`, which are those of ovs-vswitchd(8), also when the program
//! is called by that name.

use std::env;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command};
use config::{ConfigError, DatabaseRemote, DummyCores, DummyMode, Tls};
use runtime::rundir_file;
use vswitchd::{
    DaemonError, LogFile, LogOutputs, ManagedSwitch, PROGRAM, Pidfile, ProcessRole, ProcessUser,
    SAYS_IT_IS, SyscallFilter, Syslog, SyslogTarget,
};

use crate::switch_args::read_tls;

/// Length of the prefix of the version in the output of `--version`.
const NAME_LEN: usize = PROGRAM.len() + 1;

/// The only TLS version that can be selected by name.
const TLS: &str = "TLSv1.2";

/// The default directory of log files, as in Open vSwitch.
const LOGDIR_USUAL: &str = "/var/log/openvswitch";

/// The default file of the checkpoint, in the run directory.
const CHECKPOINT: &str = "ovs-vswitchd.checkpoint";

/// The arguments of `comporta vswitchd`.
#[derive(Args)]
#[command(
    name = "vswitchd",
    about = "Run the switch in place of ovs-vswitchd, configured by its database",
    version = SAYS_IT_IS.split_at(NAME_LEN).1,
    display_name = PROGRAM,
    after_help = "The options are those of ovs-vswitchd(8). Interfaces, bridges and controllers are \
                  configured with ovs-vsctl. If this program is called ovs-vswitchd, it takes the same \
                  arguments.\n\n\
                  Examples:\n  \
                  comporta vswitchd --pidfile --log-file --detach\n  \
                  ovs-vsctl add-br br0 -- add-port br0 eth1"
)]
pub(crate) struct VswitchdArgs {
    /// The database: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT [default: unix:RUNDIR/db.sock]
    database: Option<String>,
    /// Write the process id to a file [default: RUNDIR/ovs-vswitchd.pid]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pidfile: Option<Option<PathBuf>>,
    /// Overwrite the pidfile of another running process
    #[arg(long)]
    overwrite_pidfile: bool,
    /// Continue in the background, after the configuration of the database is applied
    #[arg(long)]
    detach: bool,
    /// Keep the working directory in the background [default: change to /]
    #[arg(long)]
    no_chdir: bool,
    /// Run the switch in a child process, and restart it when it crashes
    #[arg(long)]
    monitor: bool,
    /// Run as another user, with the network and memory capabilities of root only
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// End the process at a system call that a switch does not make, or only log it, or neither:
    /// kill, log or off [default: kill with --user, off otherwise]
    #[arg(long, value_name = "ACTION", num_args = 0..=1, require_equals = true, default_missing_value = "kill")]
    seccomp: Option<String>,
    /// Log to a file [default: /var/log/openvswitch/ovs-vswitchd.log]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log_file: Option<Option<PathBuf>>,
    /// Set log levels, as in file:dbg: of a module, or of syslog, console or file, or both: off,
    /// emer, err, warn, info or dbg; or PATTERN:DESTINATION:PATTERN, or FACILITY:FACILITY [default:
    /// info]
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true, default_missing_value = "dbg")]
    verbose: Vec<String>,
    /// The transport to syslog: libc, unix:FILE, udp:IP:PORT or null [default: $OVS_SYSLOG_METHOD
    /// or libc]
    #[arg(long, value_name = "METHOD")]
    syslog_method: Option<String>,
    /// Log to the syslog of another machine, too
    #[arg(long, value_name = "IP:PORT")]
    syslog_target: Option<String>,
    /// The control socket; none disables it [default: RUNDIR/ovs-vswitchd.PID.ctl]
    #[arg(long, value_name = "SOCKET")]
    unixctl: Option<PathBuf>,
    /// Lock all memory, so that it is not swapped
    #[arg(long)]
    mlockall: bool,
    /// Enable interfaces of type dummy for tests; =system: replace system interfaces, too;
    /// =override: all devices
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    enable_dummy: Option<String>,
    /// Pretend to have a core on each of these NUMA nodes, with a worker for interfaces of type
    /// dummy-pmd, as in 0,0,1,1; for tests
    #[arg(long, value_name = "NODE,...", allow_hyphen_values = true)]
    dummy_numa: Option<DummyCores>,
    /// Accepted for ovs-ctl: there is no kernel data path in any case
    #[arg(long)]
    disable_system: bool,
    /// Route tunnels by ovs/route/add only, not by the system's routes
    #[arg(long)]
    disable_system_route: bool,
    /// Allow controller sockets outside of the run directory
    #[arg(long)]
    no_self_confinement: bool,
    /// The directory of the sockets [default: $OVS_RUNDIR or /var/run/openvswitch]
    #[arg(long, value_name = "DIR")]
    rundir: Option<PathBuf>,
    /// Serve /metrics for Prometheus on this address, as in 127.0.0.1:9477
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Restore rules from this file after a crash [default: RUNDIR/ovs-vswitchd.checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Do not restore rules after a crash
    #[arg(long, conflicts_with = "checkpoint")]
    no_checkpoint: bool,
    /// The private key, for a database or controllers by TLS
    #[arg(short = 'p', long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// The certificate of the switch
    #[arg(short = 'c', long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The CA certificate for peers
    #[arg(short = 'C', long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Bootstrap: on first connection, save the peer's CA certificate to FILE
    #[arg(long, value_name = "FILE")]
    bootstrap_ca_cert: Option<PathBuf>,
    /// A CA certificate to send to peers, from which they may bootstrap
    #[arg(long, value_name = "FILE")]
    peer_ca_cert: Option<PathBuf>,
    /// TLS versions: TLSv1.2, which includes TLSv1.3
    #[arg(long, value_name = "PROTOS")]
    ssl_protocols: Option<String>,
    /// Not supported: the ciphers are those of rustls
    #[arg(long, value_name = "CIPHERS")]
    ssl_ciphers: Option<String>,
    /// Not supported: DPDK is configured in the database
    #[arg(long, num_args = 0.., allow_hyphen_values = true, hide = true)]
    dpdk: Option<Vec<String>>,
    /// Cores for the workers, one each [default: the last core]
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Normalizes the arguments: those of a program called ovs-vswitchd become those of the subcommand,
/// and `-vSPEC`, which would be parsed as flags, becomes `--verbose`.
pub(crate) fn arguments(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.into_iter().collect();
    let program_name = words.first().map(Path::new).and_then(Path::file_name);
    if program_name == Some(OsStr::new(PROGRAM)) {
        words.splice(..1, ["comporta".into(), "vswitchd".into()]);
    }
    if words.get(1).is_some_and(|word| word == "vswitchd") {
        for word in &mut words[2..] {
            let spec = word.to_str().and_then(|word| word.strip_prefix("-v"));
            match spec {
                Some("") => *word = "--verbose".into(),
                Some(spec) => *word = format!("--verbose={spec}").into(),
                None => {}
            }
        }
    }
    words
}

/// Returns the subcommand, whose option names may be abbreviated as by getopt_long(3).
pub(crate) fn command() -> Command {
    VswitchdArgs::augment_args(Command::new("vswitchd")).infer_long_args(true)
}

/// Returns the message about invalid arguments, in the words of getopt_long(3).
pub(crate) fn usage_error(error: &clap::Error) -> String {
    let argument = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let given = argument(ContextKind::InvalidArg);
    // Behind the name of an option follows that of its value.
    let option = given.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => match given.strip_prefix('-') {
            Some(long) if long.starts_with('-') => format!("unrecognized option '{given}'"),
            Some(short) => format!("invalid option -- '{short}'"),
            None => "at most one non-option argument accepted; use --help for usage".to_owned(),
        },
        ErrorKind::TooManyValues => format!("option '{option}' doesn't allow an argument"),
        ErrorKind::InvalidValue if argument(ContextKind::InvalidValue).is_empty() => {
            format!("option '{option}' requires an argument")
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    }
}

impl VswitchdArgs {
    /// Runs the daemon, or another process that runs it.
    ///
    /// # Errors
    /// The daemon cannot run; one line states the reason and the remedy.
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let database = self.database.as_deref().map(str::parse::<DatabaseRemote>);
        let database = database.transpose()?;
        let tls = self.tls()?;
        let dummies = self.enable_dummy.as_deref().map(str::parse::<DummyMode>);
        let dummies = dummies.transpose()?.unwrap_or_default();
        let person = self.user.as_deref().map(ProcessUser::read).transpose()?;
        let filter = self.seccomp.as_deref().map(str::parse::<SyscallFilter>);
        let filter = filter.transpose()?;
        let outlets = self.outlets()?;
        let in_background = match self.detach.then(vswitchd::detach).transpose()? {
            Some(ProcessRole::Foreground) => return Ok(ExitCode::SUCCESS),
            Some(ProcessRole::Background) => true,
            None => false,
        };
        let is_monitor = self.monitor && !vswitchd::is_monitored();
        let role = is_monitor.then_some("monitor");
        let logging = vswitchd::start_logging(&self.verbose, outlets, role)?;
        if is_monitor {
            let status = vswitchd::monitor(&logging, in_background)?;
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or_default()));
        }
        if self.mlockall {
            vswitchd::keep_in_memory();
        }
        let _pidfile = self.make_pidfile()?;
        if let Some(person) = person {
            if let Some(log) = logging.file() {
                person.take_over(log);
            }
            person.become_this()?;
        }
        let filter = filter.unwrap_or_else(|| SyscallFilter::default_of(person.is_some()));
        filter.apply()?;
        let chdir = !self.no_chdir;
        let ready = move || {
            if in_background && let Err(error) = vswitchd::settle(chdir) {
                tracing::warn!(%error, "cannot detach from the terminal");
            }
            // In the background after the terminal is released: scripts expect silence.
            tracing::info!("ready");
            runtime::notify_ready();
        };
        vswitchd::manage(ManagedSwitch {
            database,
            rundir: self.rundir,
            cores: self.cores,
            tls,
            dummies,
            dummy_cores: self.dummy_numa,
            unixctl: self.unixctl,
            system_routes: !self.disable_system_route,
            unix_socket_dir: !self.no_self_confinement,
            checkpoint: (!self.no_checkpoint)
                .then(|| self.checkpoint.unwrap_or_else(|| CHECKPOINT.into())),
            metrics: self.metrics,
            logging,
            ready: Box::new(ready),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn make_pidfile(&self) -> Result<Option<Pidfile>, DaemonError> {
        let default = || PathBuf::from(format!("{PROGRAM}.pid"));
        let pidfile = self.pidfile.as_ref().map(|path| {
            let path = path.clone().unwrap_or_else(default);
            let path = rundir_file(self.rundir.as_deref(), &path)?;
            Pidfile::create(&path, self.overwrite_pidfile)
        });
        pidfile.transpose()
    }

    /// Returns the keys and certificates. Options that are not supported are errors.
    fn tls(&self) -> Result<Option<Tls>, ConfigError> {
        if self.dpdk.is_some() {
            return Err(ConfigError::new(
                "--dpdk",
                "DPDK is configured in the database: ovs-vsctl set Open_vSwitch . other_config:dpdk-init=true",
            ));
        }
        if self.ssl_ciphers.is_some() {
            let problem = "not supported: the ciphers are those of rustls; omit the option";
            return Err(ConfigError::new("--ssl-ciphers", problem));
        }
        let protocols = self.ssl_protocols.iter();
        let mut protocols = protocols.flat_map(|list| list.split([' ', ',', '\t']));
        if let Some(unknown) = protocols.find(|name| !name.is_empty() && *name != TLS) {
            let problem = format!("{unknown} is not supported: use {TLS}, which includes TLSv1.3");
            return Err(ConfigError::new("--ssl-protocols", problem));
        }
        let tls = read_tls([
            self.private_key.clone(),
            self.certificate.clone(),
            self.ca_cert.clone(),
            self.bootstrap_ca_cert.clone(),
        ])?;
        if self.peer_ca_cert.is_some() && tls.is_none() {
            let problem = "TLS requires --private-key, --certificate and --ca-cert, too";
            return Err(ConfigError::new("--peer-ca-cert", problem));
        }
        Ok(tls.map(|tls| Tls {
            peer_ca_cert: self.peer_ca_cert.clone(),
            ..tls
        }))
    }

    /// Returns the destinations of log lines.
    fn outlets(&self) -> Result<LogOutputs, Box<dyn std::error::Error>> {
        let file = self.log_file.as_ref().map(|path| open_log(path.as_deref()));
        let file = file.transpose()?;
        let method = self.syslog_method.clone();
        let method = method.or_else(|| env::var("OVS_SYSLOG_METHOD").ok());
        let method = method.filter(|method| !method.is_empty());
        let syslog = method.as_deref().map(Syslog::read).transpose();
        let syslog = syslog.map_err(|error| ConfigError::new("--syslog-method", error))?;
        let target = self.syslog_target.as_deref().map(SyslogTarget::read);
        let target = target.transpose();
        Ok(LogOutputs {
            file,
            syslog: syslog.unwrap_or_default(),
            target: target.map_err(|error| ConfigError::new("--syslog-target", error))?,
        })
    }
}

fn open_log(path: Option<&Path>) -> Result<LogFile, DaemonError> {
    let default = || {
        let directory =
            env::var_os("OVS_LOGDIR").map_or_else(|| LOGDIR_USUAL.into(), PathBuf::from);
        directory.join(format!("{PROGRAM}.log"))
    };
    LogFile::open(&path.map_or_else(default, Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> String {
        let words = arguments(words.split(' ').map(OsString::from));
        let words: Vec<_> = words
            .iter()
            .map(|word| word.to_str().expect("text"))
            .collect();
        words.join(" ")
    }

    #[test]
    fn invalid_arguments_have_the_messages_of_getopt() {
        for (words, message) in [
            ("--dance", "unrecognized option '--dance'"),
            ("-o", "invalid option -- 'o'"),
            (
                "one two",
                "at most one non-option argument accepted; use --help for usage",
            ),
            ("--detach=1", "option '--detach' doesn't allow an argument"),
            ("--user", "option '--user' requires an argument"),
        ] {
            let words = std::iter::once("vswitchd").chain(words.split(' '));
            let error = command().try_get_matches_from(words).expect_err(message);
            assert_eq!(usage_error(&error), message);
        }
    }

    #[test]
    fn program_called_ovs_vswitchd_takes_its_arguments() {
        let expected = "comporta vswitchd unix:db.sock --verbose=console:emer --verbose --detach";
        let input = "/usr/sbin/ovs-vswitchd unix:db.sock -vconsole:emer -v --detach";
        assert_eq!(read(input), expected);
        assert_eq!(
            read("comporta vswitchd -vfile:info"),
            "comporta vswitchd --verbose=file:info"
        );
        assert_eq!(read("comporta lab -v"), "comporta lab -v");
    }
}
