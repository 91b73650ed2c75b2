//! What an experiment with load, echoes or rules needs of a device: a data plane with hosts at its
//! ports and someone who tells it rules. Each such experiment is written against a [`Plane`], so
//! that one in memory whose faults are known can stand in the place of a station's.
//!
//! Not here: what is measured with it.

#[cfg(test)]
pub(super) mod simulated;

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use base::Instant;
use controller::{Ask, Controller, ControllerError, Done};
use flow::FlowMod;
use openflow::{Message, Version};
use record::{Conditions, OpenFlowEvidence};
use testbed::Failure;

use super::offered::{Load, Offered, again, offer, offer_once};
use crate::catalogue::prelude::*;
use crate::frame_echo::{self, FrameEcho, FrameEchoes};
use crate::frames::UdpFrame;
use crate::setup::TestSetup;
use crate::setup::Watch;
use crate::tools::Tools;
use crate::trial::{Measured, TrialError};

/// Whether the counts of rules need not be waited for any longer.
pub(super) type Enough<'a> = dyn Fn(&OpenFlowEvidence) -> bool + 'a;

/// When a cable is pulled in the course of a load, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    pub(super) after: Duration,
    pub(super) down: Duration,
}

/// A device between hosts, under a controller if it follows rules.
pub(super) trait Plane {
    /// Whether it follows rules of OpenFlow.
    fn speaks_openflow(&self) -> bool;

    /// Leaves each of its bridges with `rules` and no others, if it follows any.
    ///
    /// # Errors
    /// It refuses one of them, or is silent or gone.
    fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError>;

    /// Has its first bridge do all of `messages`, and waits for the barrier behind them.
    ///
    /// # Errors
    /// It is silent or gone.
    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError>;

    /// What the rules have counted since they were installed; none without OpenFlow. Counts are
    /// waited for a while until they are `enough`.
    fn evidence(&mut self, enough: &Enough<'_>) -> Result<Option<OpenFlowEvidence>, TrialError>;

    /// Offers a load, once.
    fn offer_once(&mut self, load: &Load) -> Result<Offered, TrialError>;

    /// The same while the server's cable is pulled and put back; tells for how long it was out.
    fn offer_and_pull(
        &mut self,
        load: &Load,
        pull: Pull,
    ) -> Result<(Offered, Duration), TrialError>;

    /// Offers a load, again if the tester fell short.
    fn offer(&mut self, load: &Load) -> Result<Offered, TrialError> {
        again(|| self.offer_once(load))
    }

    /// The addresses of the client and of the server.
    fn addresses(&self) -> [Ipv4Addr; 2];

    /// Echoes of whole frames between the client and the server.
    fn echo(&mut self, echo: &FrameEcho) -> Result<FrameEchoes, TrialError>;

    /// How many of `frames` come out at the server, within this time if rules are not yet in
    /// force.
    fn come_out(&mut self, frames: &[UdpFrame], patience: Duration) -> Result<usize, TrialError>;

    /// Bytes that the device's process holds; none if the kernel itself forwards.
    fn resident_bytes(&self) -> Result<Option<u64>, TrialError>;

    /// What the device costs, where its user has told.
    fn price(&self) -> Option<f64>;

    /// The time.
    fn now(&self) -> Instant;

    /// Lets time pass.
    fn wait(&mut self, time: Duration);

    /// Watches the machine and the device's process from now on.
    fn watch(&mut self) -> Result<(), TrialError>;

    /// How they fared since.
    fn conditions(&mut self) -> Result<Conditions, TrialError>;
}

impl Ask for dyn Plane + '_ {
    /// The version of all stations.
    fn version(&self) -> Version {
        Version::V10
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        Plane::request(self, messages)
    }
}

/// Does an experiment on the device of a station.
pub(super) fn on_setup(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
    experiment: fn(&Point, &mut dyn Plane) -> Result<Measured, TrialError>,
) -> Result<Measured, TrialError> {
    let mut live = Live {
        setup,
        tools,
        watch: None,
    };
    experiment(point, &mut live)
}

/// A real one.
struct Live<'a> {
    setup: &'a mut TestSetup,
    tools: &'a Tools<'a>,
    watch: Option<Watch<'a>>,
}

impl Live<'_> {
    fn controller(&self) -> Result<&Controller, ControllerError> {
        let none = || ControllerError::Down("it has no controller".to_owned());
        self.setup.controller().ok_or_else(none)
    }
}

impl Plane for Live<'_> {
    fn speaks_openflow(&self) -> bool {
        self.setup.kind().speaks_openflow()
    }

    fn install(&mut self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        self.setup.install(rules)
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        let mut controller = self.controller()?;
        controller.request(messages)
    }

    fn evidence(&mut self, enough: &Enough<'_>) -> Result<Option<OpenFlowEvidence>, TrialError> {
        Ok(self.setup.evidence(self.tools.clock, enough)?)
    }

    fn offer_once(&mut self, load: &Load) -> Result<Offered, TrialError> {
        offer_once(load, self.setup, self.tools)
    }

    fn offer(&mut self, load: &Load) -> Result<Offered, TrialError> {
        offer(load, self.setup, self.tools)
    }

    fn offer_and_pull(
        &mut self,
        load: &Load,
        Pull { after, down }: Pull,
    ) -> Result<(Offered, Duration), TrialError> {
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
                // An interface that goes down forgets its neighbours, which later tests need.
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

    fn come_out(&mut self, frames: &[UdpFrame], patience: Duration) -> Result<usize, TrialError> {
        let (clock, interrupt) = (self.tools.clock, self.tools.interrupt);
        let mut ends = frame_echo::open(&self.setup.bench, clock)?;
        let out = frame_echo::come_out(&mut ends, frames, patience, clock, interrupt)?;
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
        self.watch = Some(Watch::begin(&self.setup.bench, cores, clock)?);
        Ok(())
    }

    fn conditions(&mut self) -> Result<Conditions, TrialError> {
        match self.watch.take() {
            Some(watch) => Ok(watch.end(&self.setup.bench)?),
            None => Ok(Conditions::default()),
        }
    }
}
