//! Queues of ports: they are made and taken away by the kernel's disciplines, and their counts
//! are the kernel's, asked for when somebody asks for them.

use std::io;

use base::{Instant, PortNo};
use openflow::{Message, MultipartRequest};
use ports::shaping::{EffectiveQos, QosConfig};

use super::Control;
use super::site::{PortSite, Site};
use config::qdisc_name;
use dataplane::slots::PortKey;

/// Whether the answer tells what queues have sent.
pub(super) const fn asks_for_counts(message: &Message) -> bool {
    matches!(
        message,
        Message::MultipartRequest(MultipartRequest::Queue(_))
    )
}

impl PortSite {
    /// Has what leaves by it be in these queues. Without any, those that it was given go; what
    /// others have made of the interface stays.
    pub(super) fn shape(&mut self, wanted: Option<&QosConfig>) {
        let Some(device) = &mut self.device else {
            return;
        };
        let before = || self.shaped.as_ref().map(|(shape, _)| shape);
        let Some(shape) = wanted.or_else(before).cloned() else {
            return;
        };
        let done = device.set_qos(wanted);
        let marking = wanted.filter(|_| done.is_ok());
        self.policer.mark(marking);
        match done {
            Ok(shaped) => self.shaped = shaped.map(|shaped| (shape, shaped)),
            Err(error) => {
                self.shaped = None;
                let (kind, why) = (qdisc_name(shape.qdisc), why(&error));
                self.complain(format!("qos: {kind}: {why}"));
            }
        }
    }

    /// The queues that it has, and of what they were made.
    pub(super) fn queues(&self) -> Option<(&QosConfig, &EffectiveQos)> {
        let (shape, shaped) = self.shaped.as_ref()?;
        Some((shape, shaped))
    }
}

/// Why there are no queues.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the kernel has no such queueing discipline".to_owned(),
        io::ErrorKind::Unsupported => {
            "not honoured: its frames do not leave by a queueing discipline".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Site {
    /// Tells the bridge which queues a port has.
    pub(super) fn tell_queues(&mut self, number: PortNo, now: Instant) {
        let queues = self.ports.get(&number).and_then(PortSite::queues);
        self.bridge.set_queues(number, queues, now);
    }

    /// Tells the bridge what all queues have sent.
    pub(super) fn count_queues(&mut self) {
        for number in self.bridge.ports_with_queues() {
            let port = self.ports.get(&number);
            let device = port.and_then(|port| port.device.as_ref());
            // Of an interface that has just gone there is nothing to be told.
            let counts = device.and_then(|device| device.queue_counts().ok());
            self.bridge
                .count_queues(number, &counts.unwrap_or_default());
        }
    }
}

impl Control {
    /// Takes the queues of ports away that are not to be ports any more.
    pub(super) fn unshape(&mut self, ports: &[PortKey]) {
        for key in ports {
            let site = self.sites.get_mut(&key.bridge);
            if let Some(port) = site.and_then(|site| site.ports.get_mut(&key.port)) {
                port.shape(None);
            }
        }
    }

    /// Leaves nothing behind on interfaces that are not the switch's own, when it ends.
    pub(super) const fn clean_up(&mut self) {
        self.cleans_up = true;
    }
}
