//! Helpers for the tests of lookup forms: rules from text, and the keys of a frame.

use std::sync::Arc;

use base::{Instant, PortNo, TableId};
use flow::text::parse_flow_line;
use flow::{FlowKey, PipelineFields};
use packet::{Depth, Frame, Headers};
use pipeline::{Limits, Pipeline, Rule};

use crate::packed_key::{KeyParts, PackedKey};

/// The rules of these lines, in match order.
pub(crate) fn rules(lines: &[String]) -> Vec<Arc<Rule>> {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for line in lines {
        let flow_mod = parse_flow_line(line).expect(line);
        pipeline.flow_mod(&flow_mod, Instant::START).expect(line);
    }
    pipeline.rules(TableId(0)).cloned().collect()
}

/// The packed key of a frame received on port 1, and the flow key that a scan compares.
pub(crate) fn keys_of(frame: &Frame) -> (PackedKey, FlowKey) {
    let headers = Headers::parse(frame, Depth::Transport).expect("the frame is well formed");
    let fields = PipelineFields::new(PortNo(1));
    let (mut packed, mut key) = (PackedKey::new(), FlowKey::new());
    packed.fill(KeyParts::ALL, &headers, &fields);
    key.fill(&headers, &fields);
    (packed, key)
}
