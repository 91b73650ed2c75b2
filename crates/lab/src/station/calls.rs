//! Where a device's bridges call their controllers: each at a socket of its own, a switch of
//! the user's by TCP.

use std::net::TcpListener;
use std::time::Duration;

use controller::{Application, Controller, ControllerError, Listener, Manner};
use openflow::{Version, VersionSet};
use testbed::{Bench, Clock, DeviceOptions, Failure, Namespace, Setup};

use crate::LabError;
use crate::devices::{Callee, Description};

/// The longest path of a Unix socket, without the zero at its end (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

/// Calls that end before there is a version. A device that is set up by steps hangs up once or
/// twice; one that talks nonsense goes on for ever.
const CALLS_MAX: usize = 8;

/// Sockets where bridges are to call, in their order.
pub(super) struct Calls {
    device: String,
    manner: Manner,
    listeners: Vec<Listener>,
}

impl Calls {
    /// Listens, before the device is started.
    pub(super) fn await_of(
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
            let manner = Manner {
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
            manner: Manner {
                application,
                ..Manner::silent(Version::V10)
            },
            listeners,
        })
    }

    /// Waits until each bridge has called, and stays.
    pub(super) fn accept(
        self,
        bench: &mut Bench,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Vec<Controller>, LabError> {
        let deadline = clock.now() + limit;
        let accepted = self.accept_all(bench, clock, limit).and_then(|mut all| {
            // While a device is being told of its other bridges, it may call anew for this one.
            for (controller, listener) in all.iter_mut().zip(&self.listeners) {
                while let Err(error) = controller.is_there() {
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

    /// The first call that does not end before both have agreed.
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
            if clock.now() >= deadline || ended.len() >= CALLS_MAX {
                return Err(ControllerError::NeverCalled {
                    at: listener.place(),
                    waited: clock.now().since(began),
                    last: match ended.last() {
                        Some(reason) => format!("the last of {} ended so: {reason}", ended.len()),
                        None => "nobody called".to_owned(),
                    },
                    program: how_it_is(bench),
                });
            }
        }
    }
}

/// How the device's program is, and what it said last.
fn how_it_is(bench: &Bench) -> String {
    match bench.device().last_words().as_deref() {
        None => "it has no program of the lab's".to_owned(),
        Some("") => "its program runs, and has said nothing".to_owned(),
        Some(words) => format!("its program runs, and said last: {words}"),
    }
}

const fn is_down(error: &ControllerError) -> bool {
    matches!(error, ControllerError::Down(_))
}

/// Listens where the user says that the switch calls.
fn listen(callee: &Callee) -> Result<Listener, ControllerError> {
    let failure = || Failure::to(format!("listen at {}", callee.listen));
    let bind = || TcpListener::bind(callee.listen);
    let bound = match &callee.namespace {
        Some(path) => Namespace::open(path)?.run(bind)?,
        None => bind(),
    };
    let listener = bound.and_then(Listener::over).map_err(failure())?;
    Ok(listener)
}
