//! Egress queues of ports: classes of the kernel's queueing disciplines. Their counters are read
//! from the kernel on request.

use std::io;

use base::{Instant, PortNo};
use openflow::{Message, MultipartRequest};
use ports::shaping::{EffectiveQos, QosConfig};

use super::Control;
use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use config::qdisc_name;
use dataplane::slots::PortKey;

/// Returns true if the reply contains queue counters.
pub(super) const fn requests_queue_counts(message: &Message) -> bool {
    matches!(
        message,
        Message::MultipartRequest(MultipartRequest::Queue(_))
    )
}

impl PortRuntime {
    /// Sets the egress queues of the port. `None` removes those that the switch created, and keeps
    /// a queueing discipline of others.
    pub(super) fn shape(&mut self, wanted: Option<&QosConfig>) {
        let Some(device) = &mut self.device else {
            return;
        };
        if device.dummy().is_some() {
            // A dummy has no queues, but frames are marked.
            return self.policer.mark(wanted);
        }
        let before = || self.shaped.as_ref().map(|(shape, _)| shape);
        let Some(shape) = wanted.or_else(before).cloned() else {
            return;
        };
        let done = device.set_qos(wanted);
        // As in Open vSwitch, frames are marked also where the device has no such queues.
        self.policer.mark(wanted);
        match done {
            Ok(shaped) => self.shaped = shaped.map(|shaped| (shape, shaped)),
            Err(error) => {
                self.shaped = None;
                let (kind, why) = (qdisc_name(shape.qdisc), why(&error));
                self.record_complaint(format!("qos: {kind}: {why}"));
            }
        }
    }

    /// Returns the port's egress queues with their configuration.
    pub(super) fn queues(&self) -> Option<(&QosConfig, &EffectiveQos)> {
        let (shape, shaped) = self.shaped.as_ref()?;
        Some((shape, shaped))
    }
}

/// Returns the reason why the queues could not be created.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the kernel has no such queueing discipline".to_owned(),
        io::ErrorKind::Unsupported => "ignored: this backend has no queueing discipline".to_owned(),
        _ => error.to_string(),
    }
}

impl BridgeRuntime {
    /// Passes a port's queues to the bridge.
    pub(super) fn update_queues(&mut self, number: PortNo, now: Instant) {
        let queues = self.ports.get(&number).and_then(PortRuntime::queues);
        self.bridge.set_queues(number, queues, now);
    }

    /// Passes the counters of all queues to the bridge.
    pub(super) fn count_queues(&mut self) {
        for number in self.bridge.ports_with_queues() {
            let port = self.ports.get(&number);
            let device = port.and_then(|port| port.device.as_ref());
            // An interface that was just removed has no counters.
            let counts = device.and_then(|device| device.queue_counts().ok());
            self.bridge
                .count_queues(number, &counts.unwrap_or_default());
        }
    }
}

impl Control {
    /// Removes the egress queues of ports that are about to be removed.
    pub(super) fn unshape(&mut self, ports: &[PortKey]) {
        for key in ports {
            let site = self.sites.get_mut(&key.bridge);
            if let Some(port) = site.and_then(|site| site.ports.get_mut(&key.port)) {
                port.shape(None);
            }
        }
    }

    /// Requests that the exit removes the queues from foreign interfaces.
    pub(super) const fn clean_up(&mut self) {
        self.commands.cleans_up = true;
    }
}
