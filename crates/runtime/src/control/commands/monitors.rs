//! Commands of connectivity monitoring: `bfd/*` and `cfm/*` of ovs-vswitchd(8). A monitor is found
//! by the name of its interface, whichever bridge it is of.

use std::fmt::Write;

use base::Instant;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use l2::bfd::{BfdEndStatus, BfdStatus};
use l2::cfm::CfmStatus;
use switch::bridge::PortMonitor;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 4] = [
    Command { name: "bfd/set-forwarding", usage: "[interface] normal|false|true", least: 1, most: 2, answer: Immediate(set_forwarding) },
    Command { name: "bfd/show", usage: "[interface]", least: 0, most: 1, answer: Immediate(show_bfd) },
    Command { name: "cfm/set-fault", usage: "[interface] normal|false|true", least: 1, most: 2, answer: Immediate(set_fault) },
    Command { name: "cfm/show", usage: "[interface]", least: 0, most: 1, answer: Immediate(show_cfm) },
];

/// The answer to a change.
const DONE: &str = "OK\n";

const ROOM: &str = "a string has room";

/// Returns all monitors, sorted by name.
fn monitors(control: &Control) -> Vec<&PortMonitor> {
    let sites = control.sites.values();
    let mut all: Vec<_> = sites.flat_map(|site| site.bridge.port_monitors()).collect();
    all.sort_by_key(|monitor| monitor.name());
    all
}

fn show_bfd(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let sessions = monitors(control).into_iter();
    let mut sessions = sessions.filter_map(|monitor| Some((monitor.name(), monitor.bfd_status()?)));
    match arguments.first() {
        None => Ok(sessions
            .map(|(name, status)| format!("---- {name} ----\n{}", describe_bfd(&status, now)))
            .collect()),
        Some(wanted) => {
            let found = sessions.find(|(name, _)| name == wanted);
            let (_, status) = found.ok_or("no such bfd object")?;
            Ok(describe_bfd(&status, now))
        }
    }
}

fn describe_bfd(status: &BfdStatus, now: Instant) -> String {
    let distance = |time: Option<Instant>| millis_from(now, time.unwrap_or(Instant::START));
    let mut text = String::new();
    let mut line = |name: &str, value: String| writeln!(text, "  {name}: {value}").expect(ROOM);
    line("Forwarding", status.is_forwarding.to_string());
    line("Detect Multiplier", status.multiplier.to_string());
    line("Concatenated Path Down", status.cpath_down.to_string());
    let (tx, rx) = (
        status.tx_interval.as_millis(),
        status.rx_interval.as_millis(),
    );
    line("TX Interval", format!("Approx {tx}ms"));
    line("RX Interval", format!("Approx {rx}ms"));
    line(
        "Detect Time",
        format!("now {:+}ms", distance(status.detection_expires)),
    );
    line(
        "Next TX Time",
        format!("now {:+}ms", distance(status.next_tx)),
    );
    line(
        "Last TX Time",
        format!("now {:+}ms", distance(status.last_tx)),
    );
    text.push('\n');
    text.push_str(&describe_bfd_end("Local", &status.local));
    text.push('\n');
    text.push_str(&describe_bfd_end("Remote", &status.remote));
    let multiplier = status.remote_multiplier;
    writeln!(text, "  Remote Detect Multiplier: {multiplier}").expect(ROOM);
    text
}

fn describe_bfd_end(end: &str, status: &BfdEndStatus) -> String {
    format!(
        "  {end} Flags: {}\n  {end} Session State: {}\n  {end} Diagnostic: {}\n  \
         {end} Discriminator: {:#x}\n  {end} Minimum TX Interval: {}ms\n  \
         {end} Minimum RX Interval: {}ms\n",
        status.flags.names(),
        status.state.name(),
        status.diagnostic.name(),
        status.discriminator,
        status.min_tx.as_millis(),
        status.min_rx.as_millis(),
    )
}

fn show_cfm(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let points = monitors(control).into_iter();
    let mut points = points.filter_map(|monitor| Some((monitor.name(), monitor.cfm_status()?)));
    match arguments.first() {
        None => Ok(points
            .map(|(name, status)| describe_cfm(name, &status, now))
            .collect()),
        Some(wanted) => {
            let found = points.find(|(name, _)| name == wanted);
            let (name, status) = found.ok_or("no such CFM object")?;
            Ok(describe_cfm(name, &status, now))
        }
    }
}

fn describe_cfm(name: &str, status: &CfmStatus, now: Instant) -> String {
    let state = |is_up: bool| if is_up { "up" } else { "down" };
    let extended = if status.is_extended { " extended" } else { "" };
    let overridden = match status.is_overridden {
        true => " fault_override",
        false => "",
    };
    let mut text = format!(
        "---- {name} ----\nMPID {}:{extended}{overridden}\n",
        status.mpid
    );
    let mut line = |name: &str, value: String| writeln!(text, "  {name}: {value}").expect(ROOM);
    if !status.faults.is_none() {
        line("fault", status.faults.to_string());
    }
    let health = status.health.map(|health| health.to_string());
    line(
        "average health",
        health.unwrap_or_else(|| "undefined".to_owned()),
    );
    line("opstate", state(status.is_up).to_owned());
    line("remote_opstate", state(status.is_remote_up).to_owned());
    line("interval", format!("{}ms", status.interval.as_millis()));
    let next_tx = status.next_tx.unwrap_or(now);
    line("next CCM tx", format!("{}ms", millis_from(now, next_tx)));
    let next_check = millis_from(now, status.next_check);
    line("next fault check", format!("{next_check}ms"));
    for (mpid, remote) in &status.remotes {
        let (is_heard, state) = (remote.is_heard, state(remote.is_up));
        write!(
            text,
            "Remote MPID {mpid}\n  recv since check: {is_heard}\n  opstate: {state}\n"
        )
        .expect(ROOM);
    }
    text
}

/// Returns the milliseconds from `now` to `time`; negative if that is in the past.
fn millis_from(now: Instant, time: Instant) -> i64 {
    let millis = |instant: Instant| i64::try_from(instant.as_nanos() / 1_000_000);
    millis(time).unwrap_or(i64::MAX) - millis(now).unwrap_or(i64::MAX)
}

fn set_forwarding(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let forwarding = read_override(arguments)?;
    let now = control.now();
    override_all(control, arguments, "no such BFD object", |monitor| {
        let session = monitor.bfd_mut()?;
        session.override_forwarding(forwarding, now);
        Some(())
    })
}

fn set_fault(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let fault = read_override(arguments)?;
    override_all(control, arguments, "no such CFM object", |monitor| {
        monitor.cfm_mut()?.override_fault(fault);
        Some(())
    })
}

/// Parses the last argument: `None` for no override.
fn read_override(arguments: &[String]) -> Result<Option<bool>, String> {
    let word = arguments.last().map(|word| word.to_ascii_lowercase());
    match word.as_deref() {
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some("normal") => Ok(None),
        _ => Err("unknown fault string".to_owned()),
    }
}

/// Changes the monitors of the interface that the first of two arguments names, or of all.
fn override_all(
    control: &mut Control,
    arguments: &[String],
    missing: &str,
    change: impl Fn(&mut PortMonitor) -> Option<()>,
) -> Result<String, String> {
    let wanted = match arguments {
        [wanted, _] => Some(wanted.as_str()),
        _ => None,
    };
    let mut count = 0;
    for site in control.sites.values_mut() {
        let monitors = site.bridge.port_monitors_mut();
        let named = monitors.filter(|monitor| wanted.is_none_or(|name| monitor.name() == name));
        count += named.filter_map(&change).count();
        site.bridge.handle_operator();
    }
    match wanted {
        Some(_) if count == 0 => Err(missing.to_owned()),
        _ => Ok(DONE.to_owned()),
    }
}
