//! The daemon at work: the control thread, the workers' threads, sockets, the clock and the
//! control socket's commands around [`switch`], which decides.

mod clock;
mod connection;
mod control;
mod daemon;
mod database;
mod error;
mod hands;
mod host;
mod inbox;
mod links;
mod log;
mod logging;
mod metrics;
#[cfg(all(test, feature = "model"))]
mod model;
mod monitor;
mod patience;
mod peers;
mod process;
mod reaper;
mod rundir;
mod signals;
mod snoop;
mod streams;
mod tls;
mod underlay;
mod unixctl;
mod user;
mod vswitch;
mod worker_thread;

use std::ffi::CStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::sync::thread;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use tokio::runtime::Runtime;

use clock::Clock;
use config::{Config, Dummies, Remote, Tls};
use control::{Control, Tools};
pub use daemon::{Detached, Pidfile, detach, is_monitored, keep_in_memory, settle};
use dataplane::program::Publication;
pub use dpdk::IS_THERE as HAS_DPDK;
pub use error::SwitchError;
use inbox::Inbox;
pub use log::start_logging;
pub use logging::{LogFile, Logging, Outlets, Syslog, SyslogTarget};
pub use monitor::monitor;
use peers::Exchange;
use reaper::Reaper;
pub use rundir::rundir_file;
pub use user::Person;
use vswitch::Manager;
use worker_thread::WorkerHandle;

/// What `--version` says of the program in the place of ovs-vswitchd, and `version` of its control
/// socket. Scripts take the last word of the line with "Open vSwitch" in it for the version.
pub const SAYS_IT_IS: &str = concat!(
    "ovs-vswitchd (Comporta, in the place of Open vSwitch) ",
    env!("CARGO_PKG_VERSION"),
    "-comporta"
);

/// File descriptors that the process allows itself: thousands of peers, and a few
/// for each port and worker.
const FILES_MAX: u64 = 65_536;

/// The program whose place a managed switch takes: files in the run directory have its name.
pub const PROGRAM: &str = "ovs-vswitchd";

/// The same for the system.
const PROGRAM_NAME: &CStr = c"ovs-vswitchd";

/// What is typed in the place of a control socket where there is to be none.
const NO_SOCKET: &str = "none";

/// Where the database of a run directory waits.
const DATABASE_SOCKET: &str = "db.sock";

/// For how long the threads of the control plane go on at a stretch where others want
/// the same core: the least that the kernel grants. They wake up often and do little
/// each time; with a long stretch the kernel would let workers finish theirs first.
const STRETCH: Duration = Duration::from_micros(100);

/// Runs the switch on the calling thread, which becomes the control thread, until
/// it is told to end by a signal. `file` is read again on SIGHUP; `metrics` is where Prometheus
/// may ask.
///
/// # Errors
/// It cannot do what it was asked; one line says why and what to do.
pub fn run(
    config: Config,
    file: Option<PathBuf>,
    metrics: Option<SocketAddr>,
) -> Result<(), SwitchError> {
    config.check()?;
    let parts = Parts {
        rundir: config.rundir.clone(),
        cores: config.cores.clone(),
        file,
        dummies: Dummies::None,
        system_routes: true,
        tls: None,
        logging: None,
    };
    operate(parts, |control, runtime, inbox| {
        serve_metrics(metrics, runtime, inbox)?;
        control.configure(config)?;
        follow_links(runtime, inbox)
    })
}

/// A switch whose configuration is in a database.
pub struct Managed {
    /// The database; that of the run directory, if none is named.
    pub database: Option<Remote>,
    /// Where sockets are made, as for [`Config::rundir`].
    pub rundir: Option<PathBuf>,
    /// The cores that workers run on, as for [`Config::cores`].
    pub cores: Vec<usize>,
    /// What the database is shown, if it is gone to by TLS, and controllers, if the database
    /// does not say.
    pub tls: Option<Tls>,
    /// Which interfaces are dummies. With any there are commands to hand them frames, and time can
    /// be stopped.
    pub dummies: Dummies,
    /// The control socket, if it is not the usual one.
    pub unixctl: Option<PathBuf>,
    /// Whether tunnels go by routes of the system, too, not only by those that `ovs/route/add` has.
    pub system_routes: bool,
    /// Whether controllers may be met at sockets of the run directory only.
    pub confined: bool,
    /// Where Prometheus may ask, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// How much is said where.
    pub logging: Arc<Logging>,
    /// Told when the database was read for the first time and done what it says.
    pub ready: Box<dyn FnOnce() + Send>,
}

/// Runs a switch as a database tells it, in the place of ovs-vswitchd, as [`run`] does.
///
/// # Errors
/// It cannot do what it was asked; one line says why and what to do. That no database is
/// there is no error: it is waited for.
pub fn manage(managed: Managed) -> Result<(), SwitchError> {
    // What the scripts of Open vSwitch look for beside the process's number.
    if let Err(error) = rustix::thread::set_name(PROGRAM_NAME) {
        tracing::debug!(%error, "the process keeps its name");
    }
    let parts = Parts {
        rundir: managed.rundir,
        cores: managed.cores,
        file: None,
        dummies: managed.dummies,
        system_routes: managed.system_routes,
        tls: managed.tls.clone(),
        logging: Some(managed.logging),
    };
    operate(parts, |control, runtime, inbox| {
        control.await_flows();
        let rundir = control.rundir();
        let usual = || format!("{PROGRAM}.{}.ctl", std::process::id()).into();
        let unixctl = managed.unixctl.unwrap_or_else(usual);
        if unixctl != Path::new(NO_SOCKET) {
            control.answer_questions(&rundir.file(unixctl))?;
        }
        serve_metrics(managed.metrics, runtime, inbox)?;
        let remote = match managed.database {
            Some(Remote::Unix(path)) => Remote::Unix(rundir.file(path)),
            Some(remote) => remote,
            None => Remote::Unix(rundir.file(DATABASE_SOCKET)),
        };
        follow_links(runtime, inbox)?;
        let desk = control.desk();
        let manager = Manager::new(managed.dummies, managed.confined.then(|| rundir.absolute()));
        runtime.spawn(database::follow(
            remote,
            managed.tls,
            manager,
            rundir.file(""),
            desk,
            managed.ready,
        ));
        Ok(())
    })
}

/// What a switch needs before it has any bridge.
struct Parts {
    rundir: Option<PathBuf>,
    cores: Vec<usize>,
    file: Option<PathBuf>,
    dummies: Dummies,
    system_routes: bool,
    tls: Option<Tls>,
    logging: Option<Arc<Logging>>,
}

/// Starts all threads, has `begin` give them something to do, and serves until the end.
fn operate(
    parts: Parts,
    begin: impl FnOnce(&mut Control, &Runtime, &Inbox) -> Result<(), SwitchError>,
) -> Result<(), SwitchError> {
    let clock = match parts.dummies.are_there() {
        true => Clock::start_that_stops(),
        false => Clock::start(),
    };
    raise_file_limit();
    let rundir = rundir::open(parts.rundir.as_deref())?;
    let allowed = worker_thread::allowed_cores()?;
    let cores = choose_cores(&parts.cores, &allowed)?;
    keep_off(&cores, &allowed);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("peers")
        .on_thread_start(|| set_stretch(STRETCH))
        .enable_all()
        .build()
        .map_err(SwitchError::system("starting the runtime"))?;
    let (inbox, inputs) = Inbox::new(thread::current());
    let publication = Arc::new(Publication::default());
    let start = |(writer, core): (usize, &usize)| {
        WorkerHandle::start(writer, *core, &publication, inbox.clone(), clock)
    };
    let workers = cores
        .iter()
        .enumerate()
        .map(start)
        .collect::<Result<_, _>>()?;
    let tools = Tools {
        clock,
        runtime: runtime.handle().clone(),
        exchange: Exchange::new(inbox.clone(), clock),
        inbox: inbox.clone(),
        rundir,
        publication,
        workers,
        reaper: Reaper::start().map_err(SwitchError::system("starting a thread"))?,
        news: Arc::default(),
        file: parts.file,
        dummies: parts.dummies,
        system_routes: parts.system_routes,
        tls: parts.tls,
        logging: parts.logging,
    };
    // Only now: threads have what the one has that starts them.
    set_stretch(STRETCH);
    let mut control = Control::new(tools, inputs);
    let served = serve(&mut control, &runtime, &inbox, begin);
    control.shut_down();
    runtime.shutdown_background();
    served
}

fn serve(
    control: &mut Control,
    runtime: &Runtime,
    inbox: &Inbox,
    begin: impl FnOnce(&mut Control, &Runtime, &Inbox) -> Result<(), SwitchError>,
) -> Result<(), SwitchError> {
    {
        let _in_runtime = runtime.enter();
        signals::follow(inbox.clone()).map_err(SwitchError::system("following signals"))?;
    }
    begin(control, runtime, inbox)?;
    tracing::info!("ready");
    control.run();
    tracing::info!("ending");
    Ok(())
}

/// Lets Prometheus ask at `address`.
fn serve_metrics(
    address: Option<SocketAddr>,
    runtime: &Runtime,
    inbox: &Inbox,
) -> Result<(), SwitchError> {
    if let Some(address) = address {
        let listener = runtime
            .block_on(metrics::listen(address))
            .map_err(|error| SwitchError::Metrics { address, error })?;
        runtime.spawn(metrics::serve(listener, inbox.clone()));
        tracing::info!(%address, "metrics are served");
    }
    Ok(())
}

fn follow_links(runtime: &Runtime, inbox: &Inbox) -> Result<(), SwitchError> {
    runtime
        .block_on(links::follow(inbox.clone()))
        .map_err(SwitchError::system("following interfaces by netlink"))
}

/// The cores to work on: those asked for, or the last that there is.
fn choose_cores(wanted: &[usize], allowed: &[usize]) -> Result<Vec<usize>, SwitchError> {
    if wanted.is_empty() {
        return Ok(allowed.last().copied().into_iter().collect());
    }
    if let Some(core) = wanted.iter().find(|core| !allowed.contains(core)) {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        return Err(SwitchError::Core {
            core: *core,
            allowed: allowed.join(", "),
        });
    }
    Ok(wanted.to_vec())
}

/// Keeps this thread, and those it starts, off the workers' cores, if there are others.
fn keep_off(cores: &[usize], allowed: &[usize]) {
    let mut others = CpuSet::new();
    for core in allowed.iter().filter(|core| !cores.contains(core)) {
        others.set(*core);
    }
    if others.count() > 0
        && let Err(error) = rustix::thread::sched_setaffinity(None, &others)
    {
        tracing::warn!(%error, "the control plane shares the workers' cores");
    }
}

/// Has the calling thread go on for so long at a stretch where others want its core.
fn set_stretch(stretch: Duration) {
    if let Err(error) = sys::scheduling::set_time_slice(stretch) {
        tracing::debug!(%error, "a thread has its core in stretches of the usual length");
    }
}

/// Allows as many open files as the system lets us have.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum.map_or(FILES_MAX, |maximum| maximum.min(FILES_MAX));
    let wanted = Rlimit {
        current: Some(current),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
