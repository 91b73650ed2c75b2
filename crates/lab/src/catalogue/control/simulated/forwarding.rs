//! Forwarding of the simulated switch: frames by its rules, packet-ins and packet-outs.

use std::mem;

use base::{Cookie, Instant, PortNo, TableId, Xid};
use controller::IncomingKind;
use flow::{Action, Field, PacketIn, PacketInReason, PacketOut, PipelineFields};
use openflow::{Message, Version};
use packet::{Depth, Frame, Headers};

use super::SimulatedSwitch;
use crate::catalogue::control::rig::ServerFrame;

impl SimulatedSwitch {
    /// Forwards a frame that arrived at port 1.
    pub(super) fn forward(&mut self, frame: &[u8]) {
        self.frames += 1;
        if self.frames.is_multiple_of(self.faults.loses_one_in) {
            return;
        }
        let packet = Frame::from_bytes(frame);
        let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
        self.key.fill(&headers, &PipelineFields::new(PortNo(1)));
        let now = self.now;
        let (key, rules) = (&self.key, &mut self.rules);
        let in_force = rules
            .iter_mut()
            .filter(|one| one.from <= now && one.until.is_none_or(|until| now < until));
        let matching = in_force.filter(|one| one.rule.matching.accepts(key));
        let best = matching.max_by_key(|one| one.rule.priority);
        let actions = match best {
            Some(rule) => {
                rule.used = now;
                rule.packets += 1;
                if now < rule.drops_until {
                    return;
                }
                rule.rule.instructions.apply.clone()
            }
            None if self.version == Version::V10 => vec![Action::output(PortNo::CONTROLLER)],
            None => Vec::new(),
        };
        self.execute(frame, &actions);
    }

    fn execute(&mut self, frame: &[u8], actions: &[Action]) {
        let mut bytes = frame.to_vec();
        for action in actions {
            match action {
                Action::SetField {
                    field: Field::IpDscp,
                    value,
                    ..
                } => bytes[15] = u8::try_from(*value).unwrap() << 2,
                Action::PopVlan => drop(bytes.drain(12..16)),
                Action::Output {
                    port: PortNo::CONTROLLER,
                    ..
                } => self.send_packet_in(&bytes),
                Action::Output { port, .. } => {
                    assert_eq!(*port, PortNo(2));
                    let free = self.last_out + self.faults.per_frame;
                    let at = (self.now + self.faults.forward).max(free);
                    self.last_out = at;
                    let bytes = bytes.clone();
                    self.out.push_back(ServerFrame { at, bytes });
                }
                other => panic!("no rule has {other:?}"),
            }
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
            self.execute(&out.data, &out.actions);
            self.now = before;
        }
    }
}
