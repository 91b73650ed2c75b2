//! Experiments with records and sections of their own: their names and families.

use crate::{Description, Family};

const fn own(
    name: &'static str,
    title: &'static str,
    family: Family,
    question: &'static str,
) -> Description {
    Description {
        name,
        title,
        family,
        question,
        source: "",
        steps: &[],
        parameters: &[],
        figures: &[],
        views: &[],
        topology: None,
    }
}

/// Their descriptions, in the order of reports.
#[rustfmt::skip]
pub const DESCRIPTIONS: [Description; 7] = [
    own("echo", "Round trip", Family::DataPlanes, "round trip and jitter of UDP echoes, by match type and frame size"),
    own("tcp-throughput", "TCP throughput", Family::UserspaceSwitch, "one TCP stream, and the processor time the device spends on it"),
    own("forwarding-rate", "Forwarding rate", Family::Robustness, "small frames, flat out and at set rates: how many come out"),
    own("flow-table", "Flow table", Family::Oflops, "many flows of twelve fields: added, kept, told, deleted"),
    own("meters", "Meters", Family::Robustness, "meters by packets and bits: how exactly each second's rate is kept"),
    own("changes", "Rules that change", Family::Oflops, "rules that change under traffic: time to effect, and frames lost"),
    own("tcp-requests", "TCP requests", Family::Robustness, "requests and replies of one byte over one TCP connection"),
];
