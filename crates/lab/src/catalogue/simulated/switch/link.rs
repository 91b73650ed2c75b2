//! Link of the simulated switch, and the switch's reports about it.

use std::time::Duration;

use base::{Instant, PortNo, Xid};
use controller::IncomingKind;
use flow::{PortDesc, PortReason, PortState, PortStatus};
use openflow::Message;

use super::SimulatedSwitch;
use crate::catalogue::control::rig::ControlRig;

/// Reports of the device about its port.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct PortReports {
    /// Delay of the kernel, and further delay of the message.
    pub(in crate::catalogue) kernel_delay: Duration,
    pub(in crate::catalogue) message_delay: Duration,
    /// Messages for each change.
    pub(in crate::catalogue) per_change: u32,
    /// True if the messages report the actual state.
    pub(in crate::catalogue) is_correct: bool,
    /// Interval in which several changes are reported by one message.
    pub(in crate::catalogue) merge_interval: Duration,
}

impl Default for PortReports {
    fn default() -> Self {
        Self {
            kernel_delay: Duration::from_millis(20),
            message_delay: Duration::from_millis(2),
            per_change: 1,
            is_correct: true,
            merge_interval: Duration::ZERO,
        }
    }
}

/// State of the link, and the time of its last change.
pub(super) struct SimulatedLink {
    up: bool,
    changed_at: Instant,
}

impl SimulatedLink {
    pub(super) const UP: Self = Self {
        up: true,
        changed_at: Instant::START,
    };
}

impl SimulatedSwitch {
    /// Takes the link of `port` up or down.
    pub(in crate::catalogue) fn change_link(&mut self, port: PortNo, up: bool) {
        let now = self.now();
        self.link = SimulatedLink {
            up,
            changed_at: now,
        };
        let reports = self.faults.port_reports.clone();
        let due = now + reports.kernel_delay + reports.message_delay;
        let stays = |at: Instant| at + reports.merge_interval <= due;
        self.replies
            .retain(|(at, _), reply| reply.kind != IncomingKind::PortStatus || stays(*at));
        for _ in 0..reports.per_change {
            let mut port = PortDesc::new(port);
            port.state = PortState(u32::from(up != reports.is_correct));
            let reason = PortReason::Modify;
            let message = Message::PortStatus(PortStatus { reason, port });
            self.count += 1;
            self.reply(due, IncomingKind::PortStatus, Xid(0), Some(message));
        }
    }

    /// Returns the carrier state of the switch's port.
    pub(in crate::catalogue) fn has_carrier(&self) -> bool {
        let shown = self.now() >= self.link.changed_at + self.faults.port_reports.kernel_delay;
        self.link.up == shown
    }
}
