//! What tests of forms have in common: rules, and what of a frame is looked at.

use std::sync::Arc;

use base::{Instant, PortNo, TableId};
use flow::text::parse_flow_line;
use flow::{FlowKey, PipelineFields};
use packet::{Depth, Frame, Headers};
use pipeline::{Limits, Pipeline, Rule};

use crate::lanes::{Lanes, Parts};

/// The rules of these lines, in the order in which they are tried.
pub(crate) fn rules(lines: &[String]) -> Vec<Arc<Rule>> {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for line in lines {
        let flow_mod = parse_flow_line(line).expect(line);
        pipeline.flow_mod(&flow_mod, Instant::START).expect(line);
    }
    pipeline.rules(TableId(0)).cloned().collect()
}

/// The words of a frame that comes in by port 1, and the key that a walk looks at.
pub(crate) fn seen_of(frame: &Frame) -> (Lanes, FlowKey) {
    let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
    let registers = PipelineFields::new(PortNo(1));
    let (mut lanes, mut key) = (Lanes::new(), FlowKey::new());
    lanes.fill(Parts::ALL, &headers, &registers);
    key.fill(&headers, &registers);
    (lanes, key)
}
