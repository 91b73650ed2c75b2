//! Interface of a device for experiments with load, echoes or rules: a data plane with hosts at its
//! ports and a controller. Each such experiment is written against a [`Plane`], so that tests can
//! use a simulated device with known faults.
//!
//! The measurements themselves are not part of this module.

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use base::Instant;
use controller::{Controller, ControllerError, DeviceRequests, RequestOutcome};
use flow::FlowMod;
use openflow::{Message, Version};
use record::{Conditions, OpenFlowEvidence};
use testbed::Failure;

use super::offered::{Load, LoadResult, again, offer, offer_once};
use crate::catalogue::prelude::*;
use crate::frame_echo::{self, FrameEcho, FrameEchoes};
use crate::frames::UdpFrame;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::{TrialError, TrialResult};

/// Condition under which the counters of the rules are up to date.
pub(super) type Enough<'a> = dyn Fn(&OpenFlowEvidence) -> bool + 'a;

/// Start of a link failure after the start of the load, and its duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    pub(super) after: Duration,
    pub(super) down: Duration,
}

/// A device between hosts, with a controller if it supports OpenFlow.
pub(super) trait Plane {
    /// Returns true if the device supports OpenFlow.
    fn speaks_openflow(&self) -> bool;

    /// Replaces the rules of each bridge by `rules`. Does nothing without OpenFlow.
    ///
    /// # Errors
    /// The device rejects one of the rules, does not reply, or has no connection.
    fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError>;

    /// Sends `messages` to the first bridge and waits for the reply to a barrier after them.
    ///
    /// # Errors
    /// The device does not reply or has no connection.
    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError>;

    /// Returns the counters of the rules since their installation; none without OpenFlow. Waits a
    /// while for counters that are `enough`.
    fn evidence(&mut self, enough: &Enough<'_>) -> Result<Option<OpenFlowEvidence>, TrialError>;

    /// Offers a load, once.
    fn offer_once(&mut self, load: &Load) -> Result<LoadResult, TrialError>;

    /// Offers a load once, while the server's link is taken down and up again. Returns the duration
    /// of the failure too.
    fn offer_and_pull(
        &mut self,
        load: &Load,
        pull: Pull,
    ) -> Result<(LoadResult, Duration), TrialError>;

    /// Offers a load, again if the generator did not reach the rate.
    fn offer(&mut self, load: &Load) -> Result<LoadResult, TrialError> {
        again(|| self.offer_once(load))
    }

    /// Returns the addresses of the client and of the server.
    fn addresses(&self) -> [Ipv4Addr; 2];

    /// Measures echoes of whole frames between the client and the server.
    fn echo(&mut self, echo: &FrameEcho) -> Result<FrameEchoes, TrialError>;

    /// Returns the number of `frames` that arrive at the server. Repeats them for up to `timeout`
    /// while rules are not in force.
    fn count_arrivals(
        &mut self,
        frames: &[UdpFrame],
        timeout: Duration,
    ) -> Result<usize, TrialError>;

    /// Returns the resident memory of the device's process in bytes; none if the kernel itself
    /// forwards.
    fn resident_bytes(&self) -> Result<Option<u64>, TrialError>;

    /// Returns the price of the device if its user has configured it.
    fn price(&self) -> Option<f64>;

    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Waits for this time.
    fn wait(&mut self, time: Duration);

    /// Begins to monitor the machine and the device's process.
    fn watch(&mut self) -> Result<(), TrialError>;

    /// Returns the observations since [`Self::watch`].
    fn conditions(&mut self) -> Result<Conditions, TrialError>;
}

impl DeviceRequests for dyn Plane + '_ {
    /// All test setups use the same version.
    fn version(&self) -> Version {
        Version::V10
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        Plane::request(self, messages)
    }
}

/// Runs an experiment on the device of a test setup.
pub(super) fn on_setup(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
    experiment: fn(&Point, &mut dyn Plane) -> Result<TrialResult, TrialError>,
) -> Result<TrialResult, TrialError> {
    let mut live = LivePlane {
        setup,
        tools,
        watch: None,
    };
    experiment(point, &mut live)
}

/// The device of a test setup.
struct LivePlane<'a> {
    setup: &'a mut TestSetup,
    tools: &'a Tools<'a>,
    watch: Option<ConditionMonitor<'a>>,
}

impl LivePlane<'_> {
    fn controller(&self) -> Result<&Controller, ControllerError> {
        let none = || ControllerError::Down("it has no controller".to_owned());
        self.setup.controller().ok_or_else(none)
    }
}

impl Plane for LivePlane<'_> {
    fn speaks_openflow(&self) -> bool {
        self.setup.kind().speaks_openflow()
    }

    fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        self.setup.install(rules)
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        let mut controller = self.controller()?;
        controller.request(messages)
    }

    fn evidence(&mut self, enough: &Enough<'_>) -> Result<Option<OpenFlowEvidence>, TrialError> {
        Ok(self.setup.evidence(self.tools.clock, enough)?)
    }

    fn offer_once(&mut self, load: &Load) -> Result<LoadResult, TrialError> {
        offer_once(load, self.setup, self.tools)
    }

    fn offer(&mut self, load: &Load) -> Result<LoadResult, TrialError> {
        offer(load, self.setup, self.tools)
    }

    fn offer_and_pull(
        &mut self,
        load: &Load,
        Pull { after, down }: Pull,
    ) -> Result<(LoadResult, Duration), TrialError> {
        let (setup, tools) = (&*self.setup, self.tools);
        let [client, server] = [setup.bench.client(), setup.bench.server()];
        let (address, mac) = (client.address, client.mac);
        thread::scope(|scope| {
            let pulling = scope.spawn(|| {
                let clock = tools.clock;
                let (namespace, interface) = (&server.namespace, server.interface);
                clock.sleep_until(clock.now() + after);
                let began = clock.now();
                namespace.set_down(interface)?;
                clock.sleep_until(clock.now() + down);
                namespace.set_up(interface)?;
                let pulled = clock.now().since(began);
                // The kernel deletes the neighbours of an interface that is set down, but later
                // tests need them.
                namespace.add_neighbour(interface, address, mac)?;
                Ok::<_, Failure>(pulled)
            });
            let offered = offer_once(load, setup, tools);
            let pulled = pulling
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((offered?, pulled?))
        })
    }

    fn addresses(&self) -> [Ipv4Addr; 2] {
        let bench = &self.setup.bench;
        [bench.client().address, bench.server().address]
    }

    fn echo(&mut self, echo: &FrameEcho) -> Result<FrameEchoes, TrialError> {
        let Tools {
            cores,
            clock,
            interrupt,
            ..
        } = *self.tools;
        let bench = &self.setup.bench;
        let echoes = frame_echo::run(bench, echo, &cores.tester, clock, interrupt)?;
        Ok(echoes)
    }

    fn count_arrivals(
        &mut self,
        frames: &[UdpFrame],
        timeout: Duration,
    ) -> Result<usize, TrialError> {
        let (clock, interrupt) = (self.tools.clock, self.tools.interrupt);
        let mut ends = frame_echo::open(&self.setup.bench, clock)?;
        let out = frame_echo::count_arrivals(&mut ends, frames, timeout, clock, interrupt)?;
        Ok(out)
    }

    fn resident_bytes(&self) -> Result<Option<u64>, TrialError> {
        let usage = self.setup.bench.device().usage()?;
        Ok(usage.map(|usage| usage.resident_bytes))
    }

    fn price(&self) -> Option<f64> {
        let described = self.setup.description()?;
        described.inventory.price
    }

    fn now(&self) -> Instant {
        self.tools.clock.now()
    }

    fn wait(&mut self, time: Duration) {
        let clock = self.tools.clock;
        clock.sleep_until(clock.now() + time);
    }

    fn watch(&mut self) -> Result<(), TrialError> {
        let Tools { cores, clock, .. } = *self.tools;
        self.watch = Some(ConditionMonitor::begin(&self.setup.bench, cores, clock)?);
        Ok(())
    }

    fn conditions(&mut self) -> Result<Conditions, TrialError> {
        match self.watch.take() {
            Some(watch) => Ok(watch.end(&self.setup.bench)?),
            None => Ok(Conditions::default()),
        }
    }
}
