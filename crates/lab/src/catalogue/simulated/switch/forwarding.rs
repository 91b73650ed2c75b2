//! Forwarding of the simulated switch: frames by its rules, packet-ins and packet-outs.

use base::{Cookie, Instant, PortNo, TableId, Xid};
use controller::IncomingKind;
use flow::{Action, PacketIn, PacketInReason, PacketOut, PipelineFields};
use openflow::{Message, Version};

use super::SimulatedSwitch;
use crate::catalogue::control::rig::{ControlRig, ServerFrame};
use crate::catalogue::simulated::actions::execute;

impl SimulatedSwitch {
    /// Returns the actions of the rule of a frame that arrives at `port` at the time `now`.
    pub(in crate::catalogue::simulated) fn actions(
        &mut self,
        frame: &[u8],
        port: PortNo,
        now: Instant,
    ) -> Option<Vec<Action>> {
        let rule = self.table.lookup(frame, port, now)?;
        Some(rule.rule.instructions.apply.clone())
    }

    /// Forwards a frame that arrived at port 1.
    pub(super) fn forward(&mut self, frame: &[u8]) {
        self.frames += 1;
        if self.frames.is_multiple_of(self.faults.loses_one_in) {
            return;
        }
        let now = self.now();
        let best = self.table.lookup(frame, PortNo(1), now);
        let actions = match best {
            Some(rule) => {
                if now < rule.drops_until {
                    return;
                }
                rule.rule.instructions.apply.clone()
            }
            None if self.version == Version::V10 => vec![Action::output(PortNo::CONTROLLER)],
            None => Vec::new(),
        };
        self.output(frame, &actions, now);
    }

    /// Executes the actions on a frame at the time `now`, and sends the results.
    fn output(&mut self, frame: &[u8], actions: &[Action], now: Instant) {
        for (port, bytes) in execute(frame, actions) {
            if port == PortNo::CONTROLLER {
                self.send_packet_in(&bytes, now);
                continue;
            }
            assert_eq!(port, PortNo(2));
            let free = self.last_out + self.faults.per_frame;
            let at = (now + self.faults.forward).max(free);
            self.last_out = at;
            self.out.push_back(ServerFrame { at, bytes });
        }
    }

    fn send_packet_in(&mut self, frame: &[u8], now: Instant) {
        self.packet_ins += 1;
        if !self.packet_ins.is_multiple_of(self.faults.packet_in_one_in) {
            return;
        }
        let message = Message::PacketIn(PacketIn {
            reason: PacketInReason::NoMatch,
            table: TableId::FIRST,
            cookie: Cookie::NONE,
            registers: PipelineFields::new(PortNo(1)),
            total_len: u16::try_from(frame.len()).unwrap(),
            data: frame.to_vec(),
            userdata: Vec::new(),
            continuation: Vec::new(),
        });
        let at = now + self.faults.packet_in_delay;
        self.count += 1;
        self.reply(at, IncomingKind::PacketIn, Xid(0), Some(message));
    }

    /// Executes a packet-out at the time `done`.
    pub(super) fn packet_out(&mut self, out: &PacketOut, done: Instant) {
        self.packet_outs += 1;
        if self
            .packet_outs
            .is_multiple_of(self.faults.packet_out_one_in)
        {
            self.output(&out.data, &out.actions, done);
        }
    }
}
