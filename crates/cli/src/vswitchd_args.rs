//! The arguments of `comporta vswitchd`, which are those of ovs-vswitchd(8), also when the
//! program is called by that name; and where a daemon's words go.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, io};

use clap::Args;
use switch::config::Dummies;
use switch::config::Remote;
use switch::{Detached, LogFile, Logging, Managed, PROGRAM, Pidfile, Place, SwitchError};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Context, Filter, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::switch_args::read_tls;

/// What `--version` says behind the program's name: `ovs-ctl` looks for a line with the name
/// of Open vSwitch whose last word is a version, and writes it into the database.
const SAID_VERSION: &str = concat!(
    "(comporta, in the place of Open vSwitch) ",
    env!("CARGO_PKG_VERSION"),
    "-comporta"
);

/// Where log files are when nobody says otherwise, as for Open vSwitch.
const LOGDIR_USUAL: &str = "/var/log/openvswitch";

/// What `comporta vswitchd` is told.
#[derive(Args)]
#[command(
    name = "vswitchd",
    about = "Run the switch in the place of ovs-vswitchd: as its database tells it",
    version = SAID_VERSION,
    display_name = PROGRAM,
    after_help = "The options are those of ovs-vswitchd(8). Interfaces, bridges and controllers are \
                  ovs-vsctl's: `ovs-vsctl add-br br0`. A program called ovs-vswitchd that is this one \
                  takes the same arguments."
)]
pub(crate) struct VswitchdArgs {
    /// The database: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT [default: unix:RUNDIR/db.sock]
    database: Option<String>,
    /// Write the process's number to a file [default: RUNDIR/ovs-vswitchd.pid]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pidfile: Option<Option<PathBuf>>,
    /// Write it even if another process that runs has written there
    #[arg(long)]
    overwrite_pidfile: bool,
    /// Go on in the background, once the database was read and done what it says
    #[arg(long)]
    detach: bool,
    /// Keep the directory as it is in the background
    #[arg(long)]
    no_chdir: bool,
    /// Say there that a crashed switch is not started again by itself: have systemd do it
    #[arg(long)]
    monitor: bool,
    /// Log to a file [default: /var/log/openvswitch/ovs-vswitchd.log]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log_file: Option<Option<PathBuf>>,
    /// Say more or less: [console|file:]off|err|warn|info|dbg
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true, default_missing_value = "dbg")]
    verbose: Vec<String>,
    /// The control socket [default: RUNDIR/ovs-vswitchd.PID.ctl]
    #[arg(long, value_name = "SOCKET")]
    unixctl: Option<PathBuf>,
    /// Keep all memory out of the swap
    #[arg(long)]
    mlockall: bool,
    /// Have interfaces of type dummy for tests; =system: those of the system, too; =override: all devices
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    enable_dummy: Option<String>,
    /// There is no data path in the kernel in any case
    #[arg(long)]
    disable_system: bool,
    /// Routes of the system are not used in any case
    #[arg(long)]
    disable_system_route: bool,
    /// Nothing is confined in any case
    #[arg(long)]
    no_self_confinement: bool,
    /// Where sockets are made [default: $OVS_RUNDIR or /var/run/openvswitch]
    #[arg(long, value_name = "DIR")]
    rundir: Option<PathBuf>,
    /// Serve /metrics for Prometheus there, as in 127.0.0.1:9477
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// The switch's key, for a database or controllers by TLS
    #[arg(short = 'p', long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// The switch's certificate
    #[arg(short = 'c', long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The certificate of those who sign peers'
    #[arg(short = 'C', long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// The same, written from what the first peer says if it is not there
    #[arg(long, value_name = "FILE")]
    bootstrap_ca_cert: Option<PathBuf>,
    /// Cores for the workers, one each [default: the last core]
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
}

/// The arguments as they are to be read: those of a program called ovs-vswitchd are those
/// of the subcommand, and `-vSPEC` is written out, which would else be taken for flags.
pub(crate) fn arguments(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.into_iter().collect();
    let called = words.first().map(Path::new).and_then(Path::file_name);
    if called == Some(OsStr::new(PROGRAM)) {
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

impl VswitchdArgs {
    /// Runs the daemon, or has another process run it.
    ///
    /// # Errors
    /// It cannot be done; one line says why and what to do.
    pub(crate) fn run(self) -> Result<(), Box<dyn std::error::Error>> {
        let database = self.database.as_deref().map(str::parse::<Remote>);
        let database = database.transpose()?;
        let tls = read_tls([
            self.private_key.clone(),
            self.certificate.clone(),
            self.ca_cert.clone(),
            self.bootstrap_ca_cert.clone(),
        ])?;
        let dummies = self.enable_dummy.as_deref().map(str::parse::<Dummies>);
        let dummies = dummies.transpose()?.unwrap_or_default();
        let in_background = match self.detach.then(switch::detach).transpose()? {
            Some(Detached::Foreground) => return Ok(()),
            Some(Detached::Background) => true,
            None => false,
        };
        let logging = self.start_logging(in_background)?;
        self.say_what_is_not();
        if self.mlockall {
            switch::keep_in_memory();
        }
        let rundir = self.rundir.as_deref();
        let usual = || PathBuf::from(format!("{PROGRAM}.pid"));
        let pidfile = self.pidfile.as_ref().map(|path| {
            let path = path.clone().unwrap_or_else(usual);
            Pidfile::create(&switch::rundir_file(rundir, &path)?, self.overwrite_pidfile)
        });
        let _pidfile = pidfile.transpose()?;
        let chdir = !self.no_chdir;
        let ready = move || {
            if in_background && let Err(error) = switch::settle(chdir) {
                tracing::warn!(%error, "the terminal is not let go");
            }
        };
        switch::manage(Managed {
            database,
            rundir: self.rundir,
            cores: self.cores,
            tls,
            dummies,
            unixctl: self.unixctl,
            metrics: self.metrics,
            logging,
            ready: Box::new(ready),
        })?;
        Ok(())
    }

    /// What was asked for and is not there.
    fn say_what_is_not(&self) {
        if self.monitor {
            tracing::warn!(
                "--monitor: a crashed switch is not started again by itself: have systemd do it"
            );
        }
    }

    fn start_logging(&self, in_background: bool) -> Result<Arc<Logging>, SwitchError> {
        let file = self.log_file.as_ref().map(|path| open_log(path.as_deref()));
        let file = file.transpose()?;
        let logging = Arc::new(Logging::new(&self.verbose, file.clone()));
        let to_file = file.map(|file| {
            let layer = tracing_subscriber::fmt::layer()
                .with_target(false)
                .with_ansi(false);
            layer
                .with_writer(move || file.clone())
                .with_filter(says(&logging, Place::File))
        });
        // What is said before it is in the background is for whoever started it.
        let colours = io::stderr().is_terminal() && !in_background;
        let console = tracing_subscriber::fmt::layer()
            .with_target(false)
            .with_ansi(colours);
        let console = console
            .with_writer(io::stderr)
            .with_filter(says(&logging, Place::Console));
        tracing_subscriber::registry()
            .with(console)
            .with(to_file)
            .init();
        Ok(logging)
    }
}

/// Lets through what is to be said there, which may change.
fn says<S: Subscriber>(logging: &Arc<Logging>, place: Place) -> impl Filter<S> + use<S> {
    let logging = Arc::clone(logging);
    dynamic_filter_fn(move |event: &Metadata<'_>, _: &Context<'_, S>| {
        logging.says(place, *event.level())
    })
}

fn open_log(path: Option<&Path>) -> Result<LogFile, SwitchError> {
    let usual = || {
        let directory =
            env::var_os("OVS_LOGDIR").map_or_else(|| LOGDIR_USUAL.into(), PathBuf::from);
        directory.join(format!("{PROGRAM}.log"))
    };
    LogFile::open(&path.map_or_else(usual, Path::to_owned))
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
    fn called_by_the_other_name_it_is_the_other_program() {
        let wanted = "comporta vswitchd unix:db.sock --verbose=console:emer --verbose --detach";
        let typed = "/usr/sbin/ovs-vswitchd unix:db.sock -vconsole:emer -v --detach";
        assert_eq!(read(typed), wanted);
        assert_eq!(
            read("comporta vswitchd -vfile:info"),
            "comporta vswitchd --verbose=file:info"
        );
        assert_eq!(read("comporta lab -v"), "comporta lab -v");
    }
}
