//! Frames that pass a bridge by way of its controllers: out by packet-out, in
//! by packet-in.

use base::{Instant, PortNo};
use fastpath::Looker;
use flow::{MaxLen, PacketIn, PacketOut};
use packet::{Frame, Link};
use pipeline::{Arrival, Destination, PacketInMeta, Tables, Verdict};

use super::{Bridge, Effect};
use crate::dataplane::normal::{self, Forward};

impl Bridge {
    /// Has the fate of a controller's frame told and turns it into effects.
    pub(super) fn send_out(
        &mut self,
        message: &PacketOut,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let arrival = Arrival {
            frame: Frame::from_bytes(&message.data),
            from: message.in_port,
            now,
        };
        let mut verdict = std::mem::take(&mut self.verdict);
        let compiled = self.compiled.current();
        let looker = compiled.as_ref();
        let looker = looker.map(|view| Looker::new(view, &self.scratch));
        let tables = Tables {
            pipeline: &self.pipeline,
            lookup: match &looker {
                Some(looker) => looker,
                None => &(),
            },
        };
        self.interpreter.packet_out(
            tables,
            &message.actions,
            arrival,
            &mut self.pool,
            &mut (),
            &mut verdict,
        );
        for command in verdict.learned.drain(..) {
            self.handle_learned(&command, now);
        }
        self.carry_out(&mut verdict, message.in_port, now, effects);
        self.verdict = verdict;
    }

    fn carry_out(
        &mut self,
        verdict: &mut Verdict,
        from: PortNo,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for egress in verdict.egress.drain(..) {
            let frame = &verdict.frames[egress.frame];
            match egress.to {
                Destination::Port(port) => effects.push(Effect::Transmit(port, frame.clone())),
                Destination::Normal => {
                    let exits = self.normal_exits(frame, from, now).into_iter();
                    effects.extend(exits.map(|port| Effect::Transmit(port, frame.clone())));
                }
                Destination::Controller(meta) => {
                    self.handle_packet_in(from, meta, frame.bytes().to_vec(), effects);
                }
            }
        }
        let spent = verdict.frames.drain(..);
        spent.for_each(|frame| self.pool.put(frame));
    }

    fn normal_exits(&mut self, frame: &Frame, from: PortNo, now: Instant) -> Vec<PortNo> {
        let Ok(link) = Link::parse(frame.bytes()) else {
            return Vec::new();
        };
        let decision = normal::decide(&self.stations.view(), &link, from, now);
        if let Some(address) = decision.learn {
            self.handle_station(address, from, now);
        }
        match decision.forward {
            Forward::To(port) if normal::forwards(&self.pipeline, port) => vec![port],
            Forward::Flood => normal::flood(&self.pipeline, from).collect(),
            Forward::To(_) | Forward::Nowhere => Vec::new(),
        }
    }

    /// Takes a frame for the controllers. The switch keeps no frames, so all of it
    /// goes with the message (OF 1.3.5, 6.1.2), unless none of it was asked for.
    pub(crate) fn handle_packet_in(
        &self,
        in_port: PortNo,
        meta: PacketInMeta,
        mut data: Vec<u8>,
        effects: &mut Vec<Effect>,
    ) {
        let total_len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        if meta.max_len == Some(MaxLen(0)) {
            data.clear();
        }
        let message = PacketIn {
            reason: meta.cause.reason(),
            table: meta.table,
            cookie: meta.cookie,
            in_port,
            metadata: meta.metadata,
            tunnel_id: meta.tunnel_id,
            total_len,
            data,
        };
        self.tell_packet_in(message, meta.cause, effects);
    }
}
