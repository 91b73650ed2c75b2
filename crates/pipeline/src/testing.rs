//! Fixtures of the unit tests: a pipeline with ports, flows and frames as text.

use base::{Instant, PortNo};
use flow::text::parse_flow_line;
use flow::{FlowMod, PortDesc, Refusal};
use packet::build::Stack;
use packet::{Frame, Pool};

use crate::interpreter::{InputFrame, Interpreter};
use crate::limits::Limits;
use crate::pipeline::Pipeline;
use crate::rules::Changes;
use crate::trace::Trace;
use crate::verdict::Verdict;

pub(crate) const NOW: Instant = Instant::from_secs(100);

/// Returns a pipeline with ports 1 to 4 and these flows.
pub(crate) fn pipeline(flows: &[&str]) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 2);
    for number in 1..=4 {
        pipeline.set_port(&port(number));
    }
    for flow in flows {
        apply(&mut pipeline, flow).expect(flow);
    }
    pipeline
}

pub(crate) fn port(number: u32) -> PortDesc {
    PortDesc::new(PortNo(number))
}

pub(crate) fn flow(line: &str) -> FlowMod {
    parse_flow_line(line).expect(line)
}

pub(crate) fn apply(pipeline: &mut Pipeline, line: &str) -> Result<Changes, Refusal> {
    pipeline.flow_mod(&flow(line), NOW)
}

pub(crate) fn frame(text: &str) -> Frame {
    text.parse::<Stack>().expect(text).build()
}

/// Runs a packet from port 1.
pub(crate) fn run(
    pipeline: &Pipeline,
    text: &str,
    pool: &mut Pool,
    trace: &mut dyn Trace,
) -> Verdict {
    let mut verdict = Verdict::new();
    let arrival = InputFrame {
        frame: pool.duplicate(&frame(text)).expect("a buffer"),
        in_port: PortNo(1),
        now: NOW,
    };
    Interpreter::new(0).run(pipeline, arrival, pool, trace, &mut verdict);
    verdict
}
