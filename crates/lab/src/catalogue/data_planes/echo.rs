//! Echoes of whole frames by the rules of an experiment, and their figures.

use std::net::Ipv4Addr;

use base::PortNo;
use controller::ControllerError;
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match};
use record::{Conditions, OpenFlowEvidence, Reading};
use stats::Distribution;
use testbed::DeviceKind;

use crate::catalogue::plane::Plane;
use crate::catalogue::prelude::*;
use crate::frame_echo::{FrameEcho, FrameEchoes, Leg};
use crate::frames::{Tag, UdpFrame};
use crate::rules::{TOWARDS_CLIENT, TOWARDS_SERVER};
use crate::trial::{TrialError, TrialResult};

/// MAC addresses of the frames, behind the ports of the hosts. The hosts have others, so that their
/// network stacks do not reply.
const NEAR: [u8; 6] = [0x02, 0, 0, 0, 0, 0xa1];
const FAR: [u8; 6] = [0x02, 0, 0, 0, 0, 0xa2];

/// Priority of the rules that frames match: the middle of the range.
pub(super) const PRIORITY: u16 = 0x8000;

/// Least time of rules to take effect, in milliseconds, that a note reports.
const SETTLED_NOTED_MS: f64 = 20.0;

/// Figures of all these experiments.
pub(in crate::catalogue) const FIGURES: &[Figure] = &[
    Figure::new("mean_us", "Mean", "µs", Better::Lower),
    Figure::new("p50_us", "Median", "µs", Better::Lower),
    Figure::new("p99_us", "99 %", "µs", Better::Lower),
    Figure::new("p999_us", "99.9 %", "µs", Better::Lower),
    Figure::new("lost", "Lost", "echoes", Better::Lower),
];

/// The table of all figures, for the end of a section.
pub(in crate::catalogue) const ALL_FIGURES: View = View::Table {
    title: "All figures",
    figures: &["mean_us", "p50_us", "p99_us", "p999_us", "lost"],
};

/// Returns the approximate duration of a trial in seconds.
pub(in crate::catalogue) fn seconds(point: &Point) -> f64 {
    let echoes = point.number("packets") + point.number("warm-up");
    0.3 + echoes as f64 * 60e-6
}

/// Returns the frame that the client sends.
pub(in crate::catalogue) fn request(
    plane: &dyn Plane,
    frame_bytes: u16,
    tag: Option<Tag>,
) -> UdpFrame {
    let [client, server] = plane.addresses();
    let frame = UdpFrame {
        eth_src: NEAR,
        eth_dst: FAR,
        tag,
        ip_src: client,
        ip_dst: server,
        dscp: 0,
        udp_src: 40_001,
        udp_dst: 7_778,
        payload: 0,
    };
    frame.sized(frame_bytes)
}

/// An unused address of the testbed's network.
pub(super) const UNUSED_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 77);

/// Returns the addition of a rule that applies `actions` to frames that match and outputs them
/// towards one host.
pub(super) fn rule(matching: Match, mut actions: Vec<Action>, towards_server: bool) -> FlowMod {
    let (port, cookie) = match towards_server {
        true => (PortNo(2), TOWARDS_SERVER),
        false => (PortNo(1), TOWARDS_CLIENT),
    };
    actions.push(Action::output(port));
    let actions = Instructions::apply(actions);
    let mut rule = FlowMod::new(FlowModCommand::Add, PRIORITY, matching, actions);
    rule.cookie = cookie;
    rule
}

/// Installs `rules` if the device supports OpenFlow. The inner result has the error if the device
/// rejects a rule.
pub(super) fn install(
    plane: &mut dyn Plane,
    rules: &[FlowMod],
) -> Result<Result<(), String>, TrialError> {
    match plane.install(rules) {
        Ok(()) => Ok(Ok(())),
        Err(ControllerError::Refused { fault, .. }) => Ok(Err(format!("refused: {fault}"))),
        Err(error) => Err(error.into()),
    }
}

/// Returns the results of a trial without figures, all for the same reason.
pub(super) fn without_figures(point: &Point, reason: &str) -> TrialResult {
    let reading = Reading::lacking(point, FIGURES, reason);
    TrialResult::new(reading, Conditions::default())
}

/// Measures the echo of `request`, which should arrive as `expected`. The rules must be installed.
pub(in crate::catalogue) fn measure(
    point: &Point,
    [request, expected]: [UdpFrame; 2],
    plane: &mut dyn Plane,
) -> Result<TrialResult, TrialError> {
    let back = request.reversed();
    let echo = FrameEcho {
        request: Leg {
            sent: request,
            expected,
        },
        answer: Leg {
            sent: back,
            expected: back,
        },
        warm_up: point.small("warm-up"),
        packets: point.small("packets"),
    };
    plane.watch()?;
    let echoes = plane.echo(&echo)?;
    let conditions = plane.conditions()?;
    let reading = reading(point, &echoes);
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    check_frames(&echo, &echoes, plane, &mut measured)?;
    Ok(measured)
}

/// Returns the figures of these echoes.
fn reading(point: &Point, echoes: &FrameEchoes) -> Reading {
    let Some(all) = Distribution::new(echoes.round_trip_ns.iter().flatten().copied()) else {
        return Reading::lacking(point, FIGURES, "no echo returned");
    };
    let mut reading = Reading::at(point);
    reading.put("mean_us", all.mean() / 1e3);
    for (name, permille) in [("p50_us", 500), ("p99_us", 990), ("p999_us", 999)] {
        reading.put(name, f64::from(all.quantile(permille)) / 1e3);
    }
    reading.put("lost", (echoes.round_trip_ns.len() - all.count()) as f64);
    let histogram = stats::Histogram::of(all.values().iter().map(|&ns| ns.into()));
    reading
        .histograms
        .insert("round_trip_ns".to_owned(), histogram.encode());
    reading
}

/// Voids the trial if frames were not forwarded as their rules require.
fn check_frames(
    echo: &FrameEcho,
    echoes: &FrameEchoes,
    plane: &mut dyn Plane,
    measured: &mut TrialResult,
) -> Result<(), TrialError> {
    if echoes.wrong > 0 {
        let first = echoes.first_wrong.as_deref().unwrap_or_default();
        measured.void(format!(
            "{} frames arrived other than expected, the first as {}",
            echoes.wrong,
            hexadecimal(first)
        ));
    }
    if echoes.settled_ms > SETTLED_NOTED_MS {
        measured.note(format!(
            "the device forwarded by earlier rules for {:.0} ms after its barrier reply",
            echoes.settled_ms
        ));
    }
    // Frames that were sent while the rules took effect may have matched earlier ones.
    let sent = u64::from(echo.warm_up + echo.packets) + echoes.settling;
    let returned = echoes.round_trip_ns.iter().flatten().count() as u64;
    let returned = returned + u64::from(echo.warm_up - echoes.warm_up_lost);
    let agree = |evidence: &OpenFlowEvidence| {
        (echoes.served..=sent).contains(&evidence.towards_server)
            && (returned..=echoes.served + echoes.settling).contains(&evidence.towards_client)
    };
    let Some(evidence) = plane.evidence(&agree)? else {
        return Ok(());
    };
    // A frame may have matched no rule during the replacement of the rules.
    if evidence.packet_ins > echoes.unsettled {
        let count = evidence.packet_ins;
        measured.void(format!(
            "the device sent {count} frames to the controller: they did not match the rules"
        ));
    }
    if !agree(&evidence) {
        measured.void(format!(
            "the rules counted {} and {} frames, but {sent} were sent and {} returned",
            evidence.towards_server, evidence.towards_client, echoes.served
        ));
    }
    Ok(())
}

/// Returns the first bytes of a frame in hexadecimal digits.
fn hexadecimal(frame: &[u8]) -> String {
    let shown = frame.iter().take(64);
    shown.map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true for devices that support OpenFlow, and for others where no rule is needed.
pub(super) const fn takes(device: DeviceKind, needs_rules: bool) -> bool {
    device.speaks_openflow() || !needs_rules
}
