//! Listening sockets for the bridges of a device: a Unix socket for each bridge, or TCP for an
//! external switch.

use std::net::TcpListener;
use std::time::Duration;

use controller::{Application, Controller, ControllerError, ControllerSettings, Listener};
use openflow::{Version, VersionSet};
use testbed::{Bench, Clock, DeviceOptions, Failure, Namespace, Setup};

use crate::LabError;
use crate::devices::{ControllerBinding, Description};

/// Greatest length of a Unix socket's path, without its terminating zero (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

/// Greatest number of connections that end before version negotiation. A device that is configured
/// in steps reconnects once or twice; one that sends garbage reconnects for ever.
const CONNECTIONS_MAX: usize = 8;

/// Listening sockets, in the order of bridges.
pub(super) struct Listeners {
    device: String,
    manner: ControllerSettings,
    listeners: Vec<Listener>,
}

impl Listeners {
    /// Opens the sockets, before the device is started.
    pub(super) fn open(
        device: &DeviceOptions,
        setup: &Setup,
        application: Application,
        description: Option<&Description>,
    ) -> Result<Self, LabError> {
        let name = device.kind.to_string();
        let failed = |source| LabError::Controller {
            device: name.clone(),
            source,
        };
        if let Some(callee) = description.and_then(|described| described.controller.as_ref()) {
            let listener = listen(callee).map_err(failed)?;
            let manner = ControllerSettings {
                versions: VersionSet::only(Version::V10).with(Version::V13),
                application,
            };
            return Ok(Self {
                device: name,
                manner,
                listeners: vec![listener],
            });
        }
        let bridges = setup.topology.bridges().into_iter();
        let listeners = bridges.map(|bridge| {
            let path = device.controller_socket_of(&bridge.name);
            if path.as_os_str().len() > SOCKET_PATH_MAX {
                return Err(LabError::PathTooLong(path.display().to_string()));
            }
            Listener::bind(&path).map_err(failed)
        });
        let listeners = listeners.collect::<Result<_, _>>()?;
        Ok(Self {
            device: name,
            manner: ControllerSettings {
                application,
                ..ControllerSettings::silent(Version::V10)
            },
            listeners,
        })
    }

    /// Waits until each bridge has connected and remains connected.
    pub(super) fn accept(
        self,
        bench: &mut Bench,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Vec<Controller>, LabError> {
        let deadline = clock.now() + limit;
        let accepted = self.accept_all(bench, clock, limit).and_then(|mut all| {
            // While a device's other bridges are configured, this one may reconnect.
            for (controller, listener) in all.iter_mut().zip(&self.listeners) {
                while let Err(error) = controller.check_connection() {
                    if !is_down(&error) || clock.now() >= deadline {
                        return Err(error);
                    }
                    *controller = self.accept_one(listener, bench, clock, limit)?;
                }
            }
            Ok(all)
        });
        accepted.map_err(|source| LabError::Controller {
            device: self.device.clone(),
            source,
        })
    }

    fn accept_all(
        &self,
        bench: &mut Bench,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Vec<Controller>, ControllerError> {
        let listeners = self.listeners.iter();
        listeners
            .map(|listener| self.accept_one(listener, bench, clock, limit))
            .collect()
    }

    /// Returns the first connection that does not end before version negotiation.
    fn accept_one(
        &self,
        listener: &Listener,
        bench: &mut Bench,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Controller, ControllerError> {
        let (began, mut ended) = (clock.now(), Vec::new());
        let deadline = began + limit;
        loop {
            let rest = deadline.since(clock.now());
            let mut alive = || bench.device_mut().check();
            match listener.accept_as(self.manner.clone(), clock, rest, &mut alive) {
                Err(error) if is_down(&error) => ended.push(error.to_string()),
                Err(ControllerError::Failure(Failure::Timeout { .. })) => {}
                outcome => return outcome,
            }
            if clock.now() >= deadline || ended.len() >= CONNECTIONS_MAX {
                return Err(ControllerError::NeverCalled {
                    at: listener.address_text(),
                    waited: clock.now().since(began),
                    last: match ended.last() {
                        Some(reason) => {
                            format!("{} connections, the last ended: {reason}", ended.len())
                        }
                        None => "no connection".to_owned(),
                    },
                    program: program_state(bench),
                });
            }
        }
    }
}

/// Returns the state of the device's program, with its last output.
fn program_state(bench: &Bench) -> String {
    match bench.device().last_words().as_deref() {
        None => "the lab started no program".to_owned(),
        Some("") => "its program runs, without output".to_owned(),
        Some(words) => format!("its program runs; last output: {words}"),
    }
}

const fn is_down(error: &ControllerError) -> bool {
    matches!(error, ControllerError::Down(_))
}

/// Opens the TCP socket that the description file names.
fn listen(callee: &ControllerBinding) -> Result<Listener, ControllerError> {
    let failure = || Failure::to(format!("listen at {}", callee.listen));
    let bind = || TcpListener::bind(callee.listen);
    let bound = match &callee.namespace {
        Some(path) => Namespace::open(path)?.run(bind)?,
        None => bind(),
    };
    let listener = bound.and_then(Listener::over).map_err(failure())?;
    Ok(listener)
}
