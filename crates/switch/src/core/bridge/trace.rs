//! What would become of a frame, told and not done: no port sends, nothing is
//! counted, nobody learns. The story of the reference interpreter, in the manner of
//! Open vSwitch's `ofproto/trace`.

use std::fmt::Write;

use base::{Instant, PortNo};
use flow::{Match, Registers};
use packet::{Frame, Link, Pool};
use pipeline::{Arrival, Destination, Interpreter, Story, Verdict};

use super::Bridge;
use crate::dataplane::normal::{self, Forward};

/// Buffers for the frame and its copies: one for every port of a large bridge.
const BUFFERS: usize = 1024;

impl Bridge {
    /// Tells the way of `frame`, or of one that `matching` accepts; both together if
    /// only the port is of the match.
    ///
    /// # Errors
    /// There is no such frame; the reason is for a person.
    pub(crate) fn trace(
        &self,
        matching: &Match,
        frame: Option<Frame>,
        now: Instant,
    ) -> Result<String, String> {
        let composed = flow::compose(matching);
        let (composed, registers) = composed.ok_or_else(|| {
            format!("no frame can be put together that has all of \"{matching}\": give its bytes")
        })?;
        let from = registers.in_port;
        if registers != Registers::new(from) {
            return Err(
                "a frame arrives without metadata, tunnel, mark and registers: leave them out"
                    .to_owned(),
            );
        }
        let mut pool = Pool::new(BUFFERS);
        let mut verdict = Verdict::new();
        let mut story = Story::of_bridge(&self.identity.name);
        let arrival = Arrival {
            frame: frame.unwrap_or(composed),
            from,
            now,
        };
        Interpreter::observer().run(&self.pipeline, arrival, &mut pool, &mut story, &mut verdict);
        let mut text = story.text().to_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Datapath actions: {}", self.outputs(&verdict, from));
        Ok(text)
    }

    /// Where copies of the frame would leave, in order.
    fn outputs(&self, verdict: &Verdict, from: PortNo) -> String {
        let outputs = verdict.egress.iter().flat_map(|egress| match &egress.to {
            Destination::Port(port) => vec![port.to_string()],
            Destination::Normal => self.normal_outputs(&verdict.frames[egress.frame], from),
            Destination::Controller(_) => vec!["controller".to_owned()],
        });
        match outputs.collect::<Vec<_>>() {
            none if none.is_empty() => "drop".to_owned(),
            outputs => outputs.join(","),
        }
    }

    fn normal_outputs(&self, frame: &Frame, from: PortNo) -> Vec<String> {
        let Ok(link) = Link::parse(frame.bytes()) else {
            return Vec::new();
        };
        let ports: Vec<PortNo> = match normal::forward(&self.stations.view(), &link, from) {
            Forward::To(port) if normal::forwards(&self.pipeline, port) => vec![port],
            Forward::Flood => normal::flood(&self.pipeline, from).collect(),
            Forward::To(_) | Forward::Nowhere => Vec::new(),
        };
        ports.iter().map(ToString::to_string).collect()
    }
}
