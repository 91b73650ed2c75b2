//! The result of a trace, and its texts for `ofproto/trace` and for the log.

use super::{SlowFlowReason, TraceSideEffect};
use crate::megaflow::Megaflow;
use dataplane::program::BridgeId;

/// The errors for which Open vSwitch logs the whole trace.
const TRACED_ERRORS: [&str; 2] = ["Recursion too deep", "Too many resubmits"];

/// The result of a trace.
pub struct TraceTranslation {
    /// The text, without the lines of the megaflow and the actions.
    pub text: String,
    /// The megaflow; none if the frame cannot be parsed.
    pub megaflow: Option<Megaflow>,
    /// The datapath actions.
    pub actions: String,
    /// The reason for which Open vSwitch would take the slow path, or the error of the trace.
    pub remark: String,
    /// The id of the recirculation after which the frame continues; zero for a received frame.
    pub recirculation: u32,
    /// The error that drops the frame with all of its outputs.
    pub error: Option<&'static str>,
    /// The errors of the rules that Open vSwitch logs, each with the name of the bridge.
    pub logged_errors: Vec<(String, String)>,
    /// The reason for which Open vSwitch would take the slow path.
    pub slow_path: Option<SlowFlowReason>,
    /// The side effects on each bridge.
    pub side_effects: Vec<(BridgeId, TraceSideEffect)>,
    /// The states of the connection that were not used, the last one first.
    pub connection_states: Vec<u8>,
}

impl TraceTranslation {
    /// Returns the whole text, as `ofproto/trace` prints it.
    #[must_use]
    pub fn report(&self) -> String {
        let Self {
            text,
            actions,
            remark,
            recirculation,
            ..
        } = self;
        let megaflow = self.megaflow.as_ref();
        let mut megaflow = megaflow.map_or_else(|| "recirc_id=0".to_owned(), ToString::to_string);
        if *recirculation != 0 {
            megaflow =
                megaflow.replacen("recirc_id=0", &format!("recirc_id={recirculation:#x}"), 1);
        }
        format!("{text}Megaflow: {megaflow}\nDatapath actions: {actions}\n{remark}")
    }

    /// Returns the log lines of the errors of the rules. The flow in a line is that of the frame as
    /// received.
    pub fn error_lines(&self) -> impl Iterator<Item = String> {
        let flow = self.text.lines().next().unwrap_or_default();
        let flow = flow.strip_prefix("Flow: ").unwrap_or(flow);
        let errors = self.logged_errors.iter();
        errors.map(move |(error, bridge)| {
            format!("{error} on bridge {bridge} while processing {flow}")
        })
    }

    /// True if the number or the depth of lookups drops the frame.
    #[must_use]
    pub fn exceeds_lookups(&self) -> bool {
        self.error
            .is_some_and(|error| TRACED_ERRORS.contains(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_name_the_bridge_and_the_received_flow() {
        let translation = TraceTranslation {
            text: "Flow: arp,in_port=1\n\nFinal flow: unchanged\n".to_owned(),
            megaflow: None,
            actions: "drop".to_owned(),
            remark: "Translation failed (Recursion too deep), packet is dropped.\n".to_owned(),
            recirculation: 1,
            error: Some("Recursion too deep"),
            logged_errors: vec![("stack underflow".to_owned(), "br1".to_owned())],
            slow_path: None,
            side_effects: Vec::new(),
            connection_states: Vec::new(),
        };
        let lines: Vec<_> = translation.error_lines().collect();
        let expected = "stack underflow on bridge br1 while processing arp,in_port=1";
        assert_eq!(lines, [expected]);
        assert!(translation.exceeds_lookups());
        let report = translation.report();
        assert!(
            report.contains("Megaflow: recirc_id=0x1\nDatapath actions: drop\nTranslation failed"),
            "{report}"
        );
    }
}
