//! The OVSDB client: a socket, an `ovsdb::Session` on it, and the manager that decides on the
//! operations. If ovsdb-server ends, the client reconnects; meanwhile the configuration does not
//! change.

mod session_stream;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use base::Instant;
use ovsdb::{Session, SessionEvent, SessionOptions};
use runtime::{ControlHandle, FlushRequest, Secrets};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant as TokioInstant;

use super::host::{self, HostFacts};
use crate::{DATABASE, LOCK, Manager, TABLES};
use config::{DatabaseRemote, Tls};
use session_stream::{Loss, SessionStream};

/// The first pause after a failed connection; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The longest pause, as in Open vSwitch.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The time limit for the set-up of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which changes are collected before they are written: a controller that reconnects
/// repeatedly, or a flapping link, is written at most ten times per second.
const COLLECT_TIME: Duration = Duration::from_millis(100);

/// The log module of connections, in the words of Open vSwitch.
const RECONNECT: &str = "reconnect";

/// The effect of a lost database.
const UNTIL_BACK: &str = "; keeping the configuration until it is back";

/// Follows the database until the runtime ends. Calls `ready` when the first configuration is read
/// and applied.
pub(crate) async fn follow(
    remote: DatabaseRemote,
    tls: Option<Tls>,
    manager: Manager,
    rundir: PathBuf,
    control: ControlHandle,
    ready: Box<dyn FnOnce() + Send>,
) {
    let secrets = Secrets::default();
    secrets.set(tls);
    let mut client = OvsdbClient {
        control,
        secrets,
        rundir,
        host: HostFacts {
            system: host::system(),
            statistics: BTreeMap::new(),
        },
        manager,
        ready: Some(ready),
    };
    let (mut pause, mut is_logged) = (BACKOFF_FIRST, false);
    loop {
        let began = client.control.clock().now();
        match client.run_session(&remote).await {
            // A server that first sends valid data and then fails is no better than one that is
            // down: only a session longer than the pause resets the backoff.
            Ok(true) if client.control.clock().now() - began > pause => {
                (pause, is_logged) = (BACKOFF_FIRST, false);
            }
            Ok(_) => {}
            // A series of failures is logged once: a database that is down for a night is one line.
            Err(error) if !is_logged => {
                tracing::info!(target: RECONNECT, "{remote}: connection attempt failed ({error}); retrying");
                is_logged = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}

/// The state of the client across sessions.
struct OvsdbClient {
    control: ControlHandle,
    secrets: Secrets,
    /// The directory of the pidfiles.
    rundir: PathBuf,
    host: HostFacts,
    manager: Manager,
    ready: Option<Box<dyn FnOnce() + Send>>,
}

impl OvsdbClient {
    /// Runs one session until it ends. Returns true if the server sent valid data.
    async fn run_session(&mut self, remote: &DatabaseRemote) -> io::Result<bool> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        match remote {
            DatabaseRemote::Unix(path) => {
                let connecting = tokio::time::timeout(CONNECT_TIMEOUT, UnixStream::connect(path));
                let stream = connecting.await.map_err(late)??;
                Ok(self.serve(remote, stream).await)
            }
            DatabaseRemote::Tcp { host, port } => {
                let connecting = TcpStream::connect((host.as_str(), *port));
                let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connecting);
                let stream = connecting.await.map_err(late)??;
                Ok(self.serve(remote, stream).await)
            }
            DatabaseRemote::Ssl { host, port } => {
                let connecting = async {
                    let stream = TcpStream::connect((host.as_str(), *port)).await?;
                    self.secrets.connect(stream).await
                };
                let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connecting);
                let stream = connecting.await.map_err(late)??;
                Ok(self.serve(remote, stream).await)
            }
        }
    }

    async fn serve(
        &mut self,
        remote: &DatabaseRemote,
        stream: impl AsyncRead + AsyncWrite,
    ) -> bool {
        tracing::info!(target: RECONNECT, "{remote}: connected");
        let mut stream = SessionStream::new(stream);
        let clock = self.control.clock();
        let mut session = new_session(remote, self.control.clock().now());
        let mut times = SessionTimers::from(self.control.clock().now());
        let mut was_ready = false;
        self.manager.handle_session();
        let mut state_writer = StateWriter::new(&self.control);
        loop {
            while let Some(event) = session.poll_event() {
                was_ready |= event == SessionEvent::Ready;
                self.manager.handle_event(&event);
                if matches!(event, SessionEvent::Closed(_)) {
                    return was_ready;
                }
            }
            match self.act(&mut session, &mut stream).await {
                // The server may have sent changes meanwhile: a report would claim that they are
                // applied.
                Ok(Some(ClientAction::Configuration)) => continue,
                Ok(Some(ClientAction::Report)) => {}
                Ok(None) => return was_ready,
                Err(loss) => {
                    log_loss(remote, loss);
                    return was_ready;
                }
            }
            state_writer.complete_if(self.manager.is_written());
            let due = times.next(&session, self.manager.statistics_interval());
            let due = TokioInstant::from_std(self.control.clock().to_system(due));
            tokio::select! {
                exchanged = stream.exchange(&mut session, || clock.now()) => {
                    if let Err(loss) = exchanged {
                        log_loss(remote, loss);
                        return was_ready;
                    }
                }
                () = self.control.changed() => times.note_change(self.control.clock().now()),
                () = state_writer.next_request() => self.manager.handle_change(),
                () = tokio::time::sleep_until(due) => {}
            }
            let now = self.control.clock().now();
            session.handle_timeout(now);
            times.fire(now, &mut self.manager);
        }
    }

    /// Applies the manager's configuration or, if there is no new one, sends its report. `None` if
    /// the switch ends.
    async fn act<S: AsyncRead + AsyncWrite>(
        &mut self,
        session: &mut Session,
        stream: &mut SessionStream<S>,
    ) -> Result<Option<ClientAction>, Loss> {
        if let Some(config) = self.manager.next_config(session.database()) {
            let clock = self.control.clock();
            let applied = self.control.configure(config);
            let applied = stream
                .serve_during(applied, session, || clock.now())
                .await?;
            return Ok(applied.map(|()| ClientAction::Configuration));
        }
        let reported = self.report(session).await;
        Ok(reported.map(|()| ClientAction::Report))
    }

    /// Sends the manager's report, if it is due. `None` if the switch ends.
    async fn report(&mut self, session: &mut Session) -> Option<()> {
        if self.manager.is_applied()
            && let Some(ready) = self.ready.take()
        {
            ready();
        }
        if self.manager.is_report_due() {
            let facts = self.control.facts().await?;
            if self.manager.wants_host() {
                self.host.statistics = host::statistics(&self.rundir);
            } else {
                self.host.statistics.clear();
            }
            let changes_due = self.manager.report(session.database(), &facts, &self.host);
            if !changes_due.is_empty() {
                let id = session.transact(&changes_due);
                self.manager.handle_sent(id);
            }
        }
        Some(())
    }
}

/// The action of the client between two exchanges with the server.
enum ClientAction {
    /// It applied a configuration.
    Configuration,
    /// It sent the reports that were due.
    Report,
}

/// Returns a session with the server at `remote`.
fn new_session(remote: &DatabaseRemote, now: Instant) -> Session {
    let options = SessionOptions {
        database: DATABASE.to_owned(),
        lock: LOCK.to_owned(),
        tables: TABLES,
    };
    let session = Session::new(options, now);
    match remote {
        DatabaseRemote::Unix(_) => session.without_probes(),
        DatabaseRemote::Tcp { .. } | DatabaseRemote::Ssl { .. } => session,
    }
}

/// Logs the loss of the connection; without an error, the server closed it.
fn log_loss(remote: &DatabaseRemote, error: Option<io::Error>) {
    match error {
        None => {
            tracing::info!(target: RECONNECT, "{remote}: connection closed by peer{UNTIL_BACK}");
        }
        Some(error) => {
            tracing::warn!(target: RECONNECT, "{remote}: connection dropped ({error}){UNTIL_BACK}");
        }
    }
}

/// The requests to write the state of the switch at once, while this client has a session.
struct StateWriter {
    control: ControlHandle,
    /// The requests that wait for a report.
    waiting: Vec<FlushRequest>,
}

impl StateWriter {
    fn new(control: &ControlHandle) -> Self {
        control.set_writing(true);
        Self {
            control: control.clone(),
            waiting: Vec::new(),
        }
    }

    /// Waits for the next request.
    async fn next_request(&mut self) {
        let request = self.control.flush_request().await;
        self.waiting.push(request);
    }

    /// Completes the requests, if the state is written.
    fn complete_if(&mut self, is_written: bool) {
        if is_written {
            self.waiting.clear();
        }
    }
}

impl Drop for StateWriter {
    fn drop(&mut self) {
        self.control.set_writing(false);
    }
}

/// The timers of a session.
struct SessionTimers {
    last_statistics: Instant,
    /// The time at which collected changes are written.
    changes_due: Option<Instant>,
    interval: Duration,
}

impl SessionTimers {
    const fn from(now: Instant) -> Self {
        Self {
            last_statistics: now,
            changes_due: None,
            interval: Duration::MAX,
        }
    }

    fn note_change(&mut self, now: Instant) {
        self.changes_due.get_or_insert(now + COLLECT_TIME);
    }

    /// Returns the time of the next timer, for this interval of statistics.
    fn next(&mut self, session: &Session, interval: Duration) -> Instant {
        self.interval = interval;
        let statistics = self.last_statistics + interval;
        let others = [self.changes_due, session.next_timeout()];
        others.into_iter().flatten().fold(statistics, Instant::min)
    }

    /// Notifies the manager of expired timers.
    fn fire(&mut self, now: Instant, manager: &mut Manager) {
        if self.changes_due.take_if(|due| *due <= now).is_some() {
            manager.handle_change();
        }
        if now >= self.last_statistics + self.interval {
            self.last_statistics = now;
            manager.handle_tick();
        }
    }
}
