//! The start of a switch: its threads, and their first work.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::sync::thread;
use config::{Config, DummyCores, DummyMode, Tls};
use control_api::RunDir;
use dataplane::program::Publication;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use tokio::runtime::Runtime;

use crate::checkpoint_file::CheckpointFile;
use crate::clock::Clock;
use crate::control::{Control, ControlEnvironment};
use crate::error::SwitchError;
use crate::handle::ControlHandle;
use crate::inbox::Inbox;
use crate::log_control::LogControl;
use crate::peers::Exchange;
use crate::reaper::Reaper;
use crate::service_manager::notify_ready;
use crate::watchdog::{BEAT_INTERVAL, Heartbeat, Watchdog, WatchedThread};
use crate::worker_thread::{self, WorkerPlace, WorkerThread, set_slice};
use crate::{cpu, links, metrics, rundir, signals};

/// The limit of file descriptors that the process sets: thousands of peers, and a few for each port
/// and worker.
const FILES_MAX: u64 = 65_536;

/// The scheduler slice of the control plane's threads: the smallest that the kernel grants. These
/// threads wake up often and do little each time; with a long slice the kernel would let workers
/// finish theirs first.
const SLICE: Duration = Duration::from_micros(100);

/// The answer of the command `version`, unless another program is replaced.
const VERSION: &str = concat!("comporta ", env!("CARGO_PKG_VERSION"));

/// Runs the switch on the calling thread, which becomes the control thread, until a signal ends it.
/// `file` is read again on SIGHUP; `metrics` is the address for Prometheus.
///
/// # Errors
/// The switch cannot start; one line gives the reason and the remedy.
pub fn run(
    config: Config,
    file: Option<PathBuf>,
    metrics: Option<SocketAddr>,
) -> Result<(), SwitchError> {
    config.check()?;
    let setup = Setup {
        rundir: config.rundir.clone(),
        cores: config.cores.clone(),
        file,
        dummies: DummyMode::None,
        dummy_cores: None,
        system_routes: true,
        tls: None,
        version: VERSION,
        log: None,
        checkpoint: None,
    };
    operate(setup, |startup| {
        startup.serve_metrics(metrics)?;
        startup.configure(config)?;
        startup.follow_links()?;
        tracing::info!("ready");
        notify_ready();
        Ok(())
    })
}

/// The parts of a switch that are decided before it has any bridge.
pub struct Setup {
    /// The run directory, as for [`RunDir::named`].
    pub rundir: Option<PathBuf>,
    /// The cores that workers run on, one each; if empty, the last core of the process.
    pub cores: Vec<usize>,
    /// The configuration file, which is read again on SIGHUP.
    pub file: Option<PathBuf>,
    /// The interfaces that are dummies. With any, the clock can be stopped.
    pub dummies: DummyMode,
    /// The cores that the switch pretends to have, each with a worker for PMD threads.
    pub dummy_cores: Option<DummyCores>,
    /// True if tunnels use the system's routes.
    pub system_routes: bool,
    /// Key and certificates for peers, if the configuration names none.
    pub tls: Option<Tls>,
    /// The answer of the command `version`.
    pub version: &'static str,
    /// The process's log, if it can be changed.
    pub log: Option<Arc<dyn LogControl>>,
    /// The file in the run directory from which tables are restored after a crash, if they are.
    pub checkpoint: Option<PathBuf>,
}

/// A switch that is starting: its threads run, its control thread does not serve yet.
pub struct Startup<'a> {
    control: &'a mut Control,
    runtimes: &'a Runtimes,
    inbox: &'a Inbox,
}

impl Startup<'_> {
    /// Returns the run directory.
    #[must_use]
    pub fn rundir(&self) -> RunDir {
        self.control.rundir()
    }

    /// Returns a handle of the control thread.
    #[must_use]
    pub fn handle(&self) -> ControlHandle {
        self.control.handle_of_this()
    }

    /// Applies the first configuration.
    ///
    /// # Errors
    /// A part of it cannot be created.
    pub fn configure(&mut self, config: Config) -> Result<(), SwitchError> {
        self.control.configure(config)
    }

    /// Blocks frames and controllers until a configuration allows them.
    pub const fn await_flows(&mut self) {
        self.control.await_flows();
    }

    /// Accepts commands at another control socket, beside those of the bridges.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn serve_unixctl(&mut self, path: &Path) -> Result<(), SwitchError> {
        rundir::remove_stale_control_sockets(&self.control.rundir());
        self.control.serve_unixctl_at(path)
    }

    /// Serves metrics for Prometheus at `address`, if there is one.
    ///
    /// # Errors
    /// The address is not of this machine, or its port is taken.
    pub fn serve_metrics(&self, address: Option<SocketAddr>) -> Result<(), SwitchError> {
        if let Some(address) = address {
            let runtime = &self.runtimes.peers;
            let listener = runtime
                .block_on(metrics::listen(address))
                .map_err(|error| SwitchError::Metrics { address, error })?;
            drop(runtime.spawn(metrics::serve(listener, self.inbox.for_peer())));
            match address.ip().is_unspecified() {
                true => tracing::warn!(%address, "serving metrics to every host; name an address"),
                false => tracing::info!(%address, "serving metrics"),
            }
        }
        Ok(())
    }

    /// Follows the system's interfaces by netlink.
    ///
    /// # Errors
    /// Netlink cannot be used.
    pub fn follow_links(&self) -> Result<(), SwitchError> {
        self.runtimes
            .tasks
            .block_on(links::follow(self.inbox.clone()))
            .map_err(SwitchError::system("following interfaces by netlink"))
    }

    /// Runs a task until the switch ends.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtimes.tasks.spawn(task));
    }
}

/// Starts all threads, calls `begin`, and serves until a signal or a command ends the switch.
///
/// # Errors
/// A thread cannot be started, or `begin` fails.
pub fn operate(
    setup: Setup,
    begin: impl FnOnce(&mut Startup<'_>) -> Result<(), SwitchError>,
) -> Result<(), SwitchError> {
    let clock = match setup.dummies.is_enabled() {
        true => Clock::start_for_tests(),
        false => Clock::start(),
    };
    raise_file_limit();
    let rundir = rundir::open(setup.rundir.as_deref())?;
    let allowed = worker_thread::allowed_cores()?;
    let cores = choose_cores(&setup.cores, &allowed)?;
    avoid_cores(&cores, &allowed);
    let runtimes = Runtimes::start()?;
    let (inbox, inputs) = Inbox::new(thread::current());
    let publication = Arc::new(Publication::default());
    let dummy_cores = setup.dummy_cores.as_ref();
    cpu::log_cores(&allowed, dummy_cores);
    let start = |(writer, place): (usize, WorkerPlace)| {
        WorkerThread::start(writer, place, &publication, inbox.clone(), clock)
    };
    let workers = cpu::worker_places(&cores, &allowed, dummy_cores)
        .into_iter()
        .enumerate()
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let heartbeats = ControlPlaneHeartbeats::default();
    let watchdog = heartbeats.watch(&workers, &runtimes, clock)?;
    let checkpoint = setup
        .checkpoint
        .map(|path| CheckpointFile::new(rundir.file(path)));
    let tools = ControlEnvironment {
        checkpoint: checkpoint.map(Arc::new),
        clock,
        runtime: runtimes.tasks.handle().clone(),
        peers_runtime: runtimes.peers.handle().clone(),
        exchange: Exchange::new(inbox.clone(), clock),
        inbox: inbox.clone(),
        rundir,
        publication,
        workers,
        reaper: Reaper::start(heartbeats.reaper)
            .map_err(SwitchError::system("starting a thread"))?,
        heartbeat: heartbeats.control,
        facts_changed: Arc::default(),
        flushes: Arc::default(),
        file: setup.file,
        dummies: setup.dummies,
        system_routes: setup.system_routes,
        tls: setup.tls,
        version: setup.version,
        log: setup.log,
    };
    // After the other threads have started: they inherit this setting.
    set_slice(SLICE);
    let mut control = Control::new(tools, inputs);
    let served = serve(&mut control, &runtimes, &inbox, begin);
    watchdog.stop();
    control.shut_down();
    runtimes.shut_down();
    served
}

/// The runtimes, each of one thread.
struct Runtimes {
    /// Configured controllers, the database, the kernel's messages, signals and control sockets.
    tasks: Runtime,
    /// Listeners, and the peers that connect to them: thousands of peers delay each other, and
    /// neither a configured controller nor the operator.
    peers: Runtime,
}

impl Runtimes {
    fn start() -> Result<Self, SwitchError> {
        Ok(Self {
            tasks: start_runtime("tasks")?,
            peers: start_runtime("peers")?,
        })
    }

    fn shut_down(self) {
        self.peers.shutdown_background();
        self.tasks.shutdown_background();
    }
}

fn start_runtime(name: &str) -> Result<Runtime, SwitchError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .on_thread_start(|| set_slice(SLICE))
        .enable_all()
        .build()
        .map_err(SwitchError::system("starting the runtime"))
}

/// The heartbeats of the threads that are no workers.
#[derive(Default)]
struct ControlPlaneHeartbeats {
    control: Arc<Heartbeat>,
    tasks: Arc<Heartbeat>,
    peers: Arc<Heartbeat>,
    reaper: Arc<Heartbeat>,
}

impl ControlPlaneHeartbeats {
    /// Starts the watchdog of these threads and of the workers. The thread of a runtime proves its
    /// life by a task.
    fn watch(
        &self,
        workers: &[WorkerThread],
        runtimes: &Runtimes,
        clock: Clock,
    ) -> Result<Watchdog, SwitchError> {
        drop(runtimes.tasks.spawn(beat(Arc::clone(&self.tasks))));
        drop(runtimes.peers.spawn(beat(Arc::clone(&self.peers))));
        let others = [
            ("control", &self.control),
            ("tasks", &self.tasks),
            ("peers", &self.peers),
            ("reaper", &self.reaper),
        ];
        let others =
            others.map(|(name, heartbeat)| WatchedThread::other(name, Arc::clone(heartbeat)));
        let threads = workers.iter().map(WorkerThread::watched).chain(others);
        Watchdog::start(clock, threads.collect()).map_err(SwitchError::system("starting a thread"))
    }
}

/// Proves the life of a runtime's thread.
async fn beat(heartbeat: Arc<Heartbeat>) {
    loop {
        heartbeat.beat();
        tokio::time::sleep(BEAT_INTERVAL).await;
    }
}

fn serve(
    control: &mut Control,
    runtimes: &Runtimes,
    inbox: &Inbox,
    begin: impl FnOnce(&mut Startup<'_>) -> Result<(), SwitchError>,
) -> Result<(), SwitchError> {
    {
        let _in_runtime = runtimes.tasks.enter();
        signals::follow(inbox.clone()).map_err(SwitchError::system("following signals"))?;
    }
    begin(&mut Startup {
        control,
        runtimes,
        inbox,
    })?;
    control.run();
    tracing::debug!("ending");
    Ok(())
}

/// Returns the workers' cores: the requested ones, or the last allowed one.
fn choose_cores(requested: &[usize], allowed: &[usize]) -> Result<Vec<usize>, SwitchError> {
    if requested.is_empty() {
        return Ok(allowed.last().copied().into_iter().collect());
    }
    if let Some(core) = requested.iter().find(|core| !allowed.contains(core)) {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        return Err(SwitchError::Core {
            core: *core,
            allowed: allowed.join(", "),
        });
    }
    Ok(requested.to_vec())
}

/// Excludes the workers' cores from this thread and those that it starts, if there are others.
fn avoid_cores(cores: &[usize], allowed: &[usize]) {
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

/// Raises the limit of open files as far as the system allows.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum.map_or(FILES_MAX, |maximum| maximum.min(FILES_MAX));
    let requested = Rlimit {
        current: Some(current),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, requested) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
