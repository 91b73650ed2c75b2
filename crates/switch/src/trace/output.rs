//! The output of a trace while the frame passes the bridges.

use super::actions::{ActionRecorder, OdpAction};
use super::{SlowFlowReason, TraceSideEffect, TracedBridge, mirroring};
use crate::megaflow::MegaflowBuilder;
use crate::odp::{ExaminedBits, OdpHeaders};
use dataplane::program::BridgeId;

/// The output of a trace under construction.
#[derive(Default)]
pub(super) struct TraceOutput {
    pub(super) text: String,
    /// The datapath actions, in the list under construction.
    pub(super) actions: Vec<OdpAction>,
    /// The headers of the frame after these actions.
    pub(super) headers: Option<OdpHeaders>,
    /// The tunnel that the actions set last.
    pub(super) tunnel: Option<String>,
    /// Bits of the frame that rules have matched or actions have written.
    pub(super) examined: ExaminedBits,
    /// The bits that all bridges so far have examined.
    pub(super) megaflow: Option<MegaflowBuilder>,
    /// The error that ended the translation.
    pub(super) error: Option<&'static str>,
    /// The errors of the rules that Open vSwitch logs, and the name of the bridge.
    pub(super) logged_errors: Vec<(String, String)>,
    pub(super) side_effects: Vec<(BridgeId, TraceSideEffect)>,
    /// The reason for which Open vSwitch would take the slow path.
    pub(super) slow_path: Option<SlowFlowReason>,
    pub(super) bridges: usize,
    pub(super) packet_ins: u32,
    pub(super) recirculations: u32,
    pub(super) recirculates: bool,
    /// The states of the connection that were not used, the last one first.
    pub(super) connection_states: Vec<u8>,
    pub(super) names: bool,
}

impl TraceOutput {
    /// Returns the recorder of a run in a bridge.
    pub(super) fn recorder<'a>(&mut self, bridge: &'a TracedBridge) -> ActionRecorder<'a> {
        ActionRecorder::new(bridge, self.megaflow.take())
            .with_recirculation(self.recirculates)
            .with_connection_states(std::mem::take(&mut self.connection_states))
    }

    /// Adds the records of a run in a bridge.
    pub(super) fn merge(&mut self, recorder: &mut ActionRecorder<'_>, bridge: &TracedBridge) {
        self.connection_states = recorder.take_connection_states();
        recorder.merge_examined(&mut self.examined);
        if recorder.is_slow() {
            self.slow_path.get_or_insert(SlowFlowReason::Action);
        }
        let errors = recorder.logged_errors().iter();
        let errors = errors.map(|error| (error.clone(), bridge.name.clone()));
        self.logged_errors.extend(errors);
    }

    pub(super) fn add_side_effects(&mut self, bridge: BridgeId, effects: Vec<TraceSideEffect>) {
        let effects = effects.into_iter().map(|effect| (bridge, effect));
        self.side_effects.extend(effects);
    }

    /// Adds the text of a frame that is dropped after its first lookup: the spanning tree blocks
    /// the port, the port punts it, or the tunnel marks congestion and the transport ignores it.
    /// Open vSwitch prints no reason here.
    pub(super) fn add_drop(&mut self, trace_text: &str) {
        let text = mirroring::first_table(trace_text);
        match self.bridges {
            1 => self.text += &format!("{text}\nFinal flow: unchanged\n"),
            _ => self.text += without_flow(&text),
        }
    }
}

/// Returns the text of a run from the title of the bridge.
pub(super) fn without_flow(text: &str) -> &str {
    let end = text
        .starts_with("Flow: ")
        .then(|| text.find("\n\n"))
        .flatten();
    end.map_or(text, |end| &text[end + 2..])
}
