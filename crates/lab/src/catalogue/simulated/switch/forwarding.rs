//! Forwarding of the simulated switch: frames by its rules, packet-ins and packet-outs.

use std::mem;

use base::{Cookie, Instant, PortNo, TableId, Xid};
use controller::IncomingKind;
use flow::{Action, PacketIn, PacketInReason, PacketOut, PipelineFields};
use openflow::{Message, Version};

use super::SimulatedSwitch;
use crate::catalogue::control::rig::ServerFrame;
use crate::catalogue::simulated::actions::execute;

impl SimulatedSwitch {
    /// Forwards a frame that arrived at port 1.
    pub(super) fn forward(&mut self, frame: &[u8]) {
        self.frames += 1;
        if self.frames.is_multiple_of(self.faults.loses_one_in) {
            return;
        }
        let now = self.now;
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
        self.output(frame, &actions);
    }

    /// Executes the actions on a frame, and sends the results.
    fn output(&mut self, frame: &[u8], actions: &[Action]) {
        for (port, bytes) in execute(frame, actions) {
            if port == PortNo::CONTROLLER {
                self.send_packet_in(&bytes);
                continue;
            }
            assert_eq!(port, PortNo(2));
            let free = self.last_out + self.faults.per_frame;
            let at = (self.now + self.faults.forward).max(free);
            self.last_out = at;
            self.out.push_back(ServerFrame { at, bytes });
        }
    }

    fn send_packet_in(&mut self, frame: &[u8]) {
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
        let at = self.now + self.faults.packet_in_delay;
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
            let before = mem::replace(&mut self.now, done);
            self.output(&out.data, &out.actions);
            self.now = before;
        }
    }
}
