//! Translation of a received frame to the megaflow and the datapath actions of Open vSwitch.

use dataplane::slots::PortKey;
use packet::Frame;
use switch::megaflow::Megaflow;
use switch::trace::{ArrivalTunnel, TraceRequest, TraceTranslation, Tracer};

/// Returns the megaflow and the datapath actions of a frame that arrived by a tunnel or none,
/// without side effects.
pub(in crate::control) fn translate(
    tracer: &Tracer,
    from: PortKey,
    (frame, tunnel): (&Frame, Option<&ArrivalTunnel>),
    has_names: bool,
) -> (Option<Megaflow>, String) {
    megaflow_and_actions(translation_of(tracer, from, (frame, tunnel), has_names))
}

/// Translates a received frame, without side effects.
pub(super) fn translation_of(
    tracer: &Tracer,
    from: PortKey,
    (frame, tunnel): (&Frame, Option<&ArrivalTunnel>),
    has_names: bool,
) -> TraceTranslation {
    let mut request = TraceRequest::received(frame.clone(), from.port, true).by_tunnel(tunnel);
    request.names = has_names;
    tracer.translate(from.bridge, request)
}

pub(super) fn megaflow_and_actions(translation: TraceTranslation) -> (Option<Megaflow>, String) {
    let TraceTranslation {
        megaflow,
        actions,
        slow_path,
        ..
    } = translation;
    // Open vSwitch's data path cannot execute the actions of such a flow.
    let actions = match slow_path {
        Some(reason) => format!("userspace(pid=0,slow_path({}))", reason.name()),
        None => actions,
    };
    (megaflow, actions)
}
