//! The compiled tables against the interpreter: rules, events and frames that the input selects. Both
//! give each frame the same verdict, and count the same.

use base::PortNo;
use flow::{FlowModCommand, FragmentHandling, PortConfig};
use pipeline::{MissPolicy, TableMiss};

use super::draw::Draw;
use crate::oracle::lists::{
    ACTIONS, CHAIN_ACTIONS, CHAIN_MATCHES, CLAUSES, MATCHES, OTHER_INSTRUCTIONS,
};
use crate::oracle::{OracleBench, OracleEvent, PORTS, ReceivedFrame};

/// The most rounds, the most events and the most frames of each. More only cost time.
const ROUNDS_MAX: u8 = 8;
const EVENTS_MAX: u8 = 24;
const FRAMES_MAX: u8 = 70;

/// Plays rounds of events and frames.
///
/// # Panics
/// If the runner differs from the interpreter.
pub fn fastpath(data: &[u8]) {
    let mut draw = Draw(data);
    let mut bench = match draw.below(4) {
        0 => OracleBench::with_flow_cache(),
        _ => OracleBench::new(),
    };
    for _ in 0..ROUNDS_MAX {
        if draw.0.is_empty() {
            break;
        }
        for event in draw.list(EVENTS_MAX, event) {
            bench.change(&event);
        }
        if draw.below(8) == 1 {
            bench.request_compaction();
        }
        let ports = u8::try_from(PORTS).expect("there are few ports");
        let from = PortNo(u32::from(draw.below(ports + 1)) + 1);
        let frames = draw.list(FRAMES_MAX, received);
        if !frames.is_empty() {
            bench.run(from, &frames);
        }
    }
}

/// Draws a frame of the lists, or a damaged one, or any bytes.
fn received(draw: &mut Draw<'_>) -> ReceivedFrame {
    match draw.below(4) {
        0 | 1 => ReceivedFrame::of_seed(draw.below(20).into()),
        2 => ReceivedFrame::of_seed(draw.number()),
        _ => {
            let mut frame = ReceivedFrame::of_seed(draw.below(20).into());
            for _ in 0..draw.below(4) {
                let (at, byte) = (usize::from(draw.below(255)), draw.below(255));
                if let Some(place) = frame.bytes.get_mut(at) {
                    *place = byte;
                }
            }
            frame
        }
    }
}

fn event(draw: &mut Draw<'_>) -> OracleEvent {
    let ports = u8::try_from(PORTS).expect("there are few ports");
    match draw.below(16) {
        0 => OracleEvent::Port(u32::from(draw.below(ports)) + 1, port_config(draw)),
        1 => OracleEvent::StpBlocked(u32::from(draw.below(ports)) + 1, draw.below(2) == 1),
        2 => OracleEvent::Protected(u32::from(draw.below(ports)) + 1, draw.below(2) == 1),
        3 => OracleEvent::Fragments(draw.choose(&[
            FragmentHandling::Normal,
            FragmentHandling::Drop,
            FragmentHandling::NxMatch,
        ])),
        4 => OracleEvent::Miss(draw.choose(&[MissPolicy::Drop, MissPolicy::Controller])),
        5 => {
            let table = draw.below(4);
            let misses = [
                TableMiss::Default,
                TableMiss::Continue,
                TableMiss::Controller,
                TableMiss::Drop,
            ];
            OracleEvent::TableMiss(table, draw.choose(&misses))
        }
        6 => OracleEvent::Standalone(draw.below(4) == 1),
        7 => clause(draw),
        8 | 9 => chain_rule(draw),
        _ => rule(draw),
    }
}

fn port_config(draw: &mut Draw<'_>) -> PortConfig {
    draw.choose(&[
        PortConfig(0),
        PortConfig::DOWN,
        PortConfig::NO_FWD,
        PortConfig::NO_RECV,
        PortConfig::NO_RECV_STP,
        PortConfig::NO_FLOOD,
        PortConfig::NO_PACKET_IN,
    ])
}

/// Returns a line whose empty parts have no separators.
fn line(table: u8, priority: u8, matching: &str, actions: Option<&str>) -> String {
    let mut line = format!("table={table},priority={priority}");
    if !matching.is_empty() {
        line = format!("{line},{matching}");
    }
    match actions {
        Some(actions) => format!("{line},actions={actions}"),
        None => line,
    }
}

fn clause(draw: &mut Draw<'_>) -> OracleEvent {
    let (table, priority) = (draw.below(4), draw.below(4));
    let (matching, clauses) = (draw.choose(MATCHES), draw.choose(CLAUSES));
    OracleEvent::Flow(
        FlowModCommand::Add,
        line(table, priority, matching, Some(clauses)),
    )
}

fn chain_rule(draw: &mut Draw<'_>) -> OracleEvent {
    let (table, priority, further) = (draw.below(20), draw.below(3), 2 + draw.below(3));
    let matching = draw.choose(CHAIN_MATCHES);
    let actions = draw.choose(CHAIN_ACTIONS);
    let next = actions.replace("NEXT", &(table + 1).to_string());
    let actions = next.replace("LATER", &(table + further).to_string());
    OracleEvent::Flow(
        FlowModCommand::Add,
        line(table, priority, matching, Some(&actions)),
    )
}

fn rule(draw: &mut Draw<'_>) -> OracleEvent {
    use FlowModCommand::{Add, DeleteStrict, ModifyStrict};
    let command = draw.choose(&[Add, Add, Add, Add, ModifyStrict, DeleteStrict]);
    let (table, priority) = (draw.below(4), draw.below(4));
    let matching = draw.choose(MATCHES);
    if command == DeleteStrict {
        return OracleEvent::Flow(command, line(table, priority, matching, None));
    }
    let meter = draw.choose(&["", "", "", "", "meter:1", "meter:2"]);
    let actions = draw.list(4, |draw| draw.choose(ACTIONS));
    let end = draw.choose(OTHER_INSTRUCTIONS);
    let mut all: Vec<_> = [meter].into_iter().chain(actions).chain([end]).collect();
    all.retain(|word| !word.is_empty());
    let all = match all.is_empty() {
        true => "drop".to_owned(),
        false => all.join(","),
    };
    OracleEvent::Flow(command, line(table, priority, matching, Some(&all)))
}
