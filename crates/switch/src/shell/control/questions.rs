//! What the control socket can be asked, and the answers: one row a command.

use std::collections::BTreeMap;
use std::fmt::Write;

use flow::Match;
use packet::Frame;
use ports::Counter;

use super::Control;
use super::gathering::telemetry;
use super::lookups::Lookups;
use super::ovs_questions::{
    bridges, data_path, dump_flows, log_list, log_reopen, log_set, memory, stations,
};
use crate::config::parse_cores;
use crate::shell::unixctl::{EXIT, Question};
use crate::telemetry::TELEMETRY;

struct Command {
    name: &'static str,
    arguments: &'static str,
    answer: Answer,
}

/// How a question is answered.
enum Answer {
    /// By the control thread, at once.
    AtOnce(fn(&mut Control, &[String]) -> Result<String, String>),
    /// With what takes a while to be found out, by another thread.
    Later(fn(&mut Control, &[String]) -> Result<Told, String>),
}

use Answer::{AtOnce, Later};

/// An answer that takes a while to put into words.
pub(super) type Told = Box<dyn FnOnce() -> String + Send>;

#[rustfmt::skip]
const COMMANDS: [Command; 20] = [
    Command { name: "bridge/dump-flows", arguments: "BRIDGE",   answer: Later(dump_flows) },
    Command { name: "comporta/affinity", arguments: "BRIDGE PORT CORE[,CORE]..", answer: AtOnce(affinity) },
    Command { name: "comporta/counters", arguments: "[BRIDGE]", answer: AtOnce(counters) },
    Command { name: "comporta/tables",   arguments: "BRIDGE",   answer: Later(tables) },
    Command { name: TELEMETRY,           arguments: "[RULES]",  answer: Later(telemetry) },
    Command { name: "comporta/workers",  arguments: "",         answer: AtOnce(workers) },
    Command { name: "coverage/show",     arguments: "",         answer: AtOnce(counters) },
    Command { name: "dpif/show",         arguments: "",         answer: AtOnce(data_path) },
    Command { name: EXIT,                arguments: "[--cleanup]", answer: AtOnce(exit) },
    Command { name: "fdb/flush",         arguments: "BRIDGE",   answer: AtOnce(fdb_flush) },
    Command { name: "fdb/show",          arguments: "BRIDGE",   answer: AtOnce(fdb_show) },
    Command { name: "fdb/stats-show",    arguments: "BRIDGE",   answer: AtOnce(stations) },
    Command { name: "list-commands",     arguments: "",         answer: AtOnce(list_commands) },
    Command { name: "memory/show",       arguments: "",         answer: AtOnce(memory) },
    Command { name: "ofproto/list",      arguments: "",         answer: AtOnce(bridges) },
    Command { name: "ofproto/trace",     arguments: "BRIDGE FLOW [PACKET]", answer: AtOnce(trace) },
    Command { name: "version",           arguments: "",         answer: AtOnce(version) },
    Command { name: "vlog/list",         arguments: "",         answer: AtOnce(log_list) },
    Command { name: "vlog/reopen",       arguments: "",         answer: AtOnce(log_reopen) },
    Command { name: "vlog/set",          arguments: "SPEC SPEC SPEC SPEC", answer: AtOnce(log_set) },
];

impl Control {
    /// Answers a question.
    pub(super) fn handle_question(&mut self, question: Question) {
        let command = COMMANDS.iter().find(|row| row.name == question.command);
        let answer = match command {
            Some(row) if question.arguments.len() <= row.arguments.split_whitespace().count() => {
                match row.answer {
                    AtOnce(answer) => answer(self, &question.arguments),
                    Later(answer) => match answer(self, &question.arguments) {
                        Ok(told) => return self.answer_later(told, question),
                        Err(problem) => Err(problem),
                    },
                }
            }
            Some(row) => Err(format!("usage: {} {}", row.name, row.arguments)),
            None => Err(format!(
                "\"{}\" is not a valid command (use \"list-commands\" to see a list)",
                question.command
            )),
        };
        // Who asked may have gone.
        drop(question.answer.send(answer));
    }

    fn answer_later(&self, told: Told, question: Question) {
        let answer = move || drop(question.answer.send(Ok(told())));
        drop(self.tools.runtime.spawn_blocking(answer));
    }
}

fn version(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(format!("comporta {}\n", env!("CARGO_PKG_VERSION")))
}

/// Agrees; the process ends when the answer has been sent.
fn exit(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

fn list_commands(_: &mut Control, _: &[String]) -> Result<String, String> {
    let lines = COMMANDS
        .iter()
        .map(|row| format!("  {:<23} {}\n", row.name, row.arguments));
    Ok(std::iter::once("The available commands are:\n".to_owned())
        .chain(lines)
        .collect())
}

pub(super) fn named<'a>(
    control: &'a mut Control,
    arguments: &[String],
) -> Result<&'a mut super::Site, String> {
    let name = arguments.first().ok_or("name a bridge")?;
    control
        .site_named(name)
        .map(|(_, site)| site)
        .ok_or_else(|| format!("no such bridge: {name}"))
}

fn fdb_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let view = named(control, arguments)?.bridge.stations().view();
    let mut text = " port  VLAN  MAC                Age\n".to_owned();
    for (address, station) in view.iter() {
        let age = (now - station.last_seen()).as_secs();
        let (port, vid, mac) = (station.port().to_string(), address.vid, address.mac);
        writeln!(text, "{port:>5}  {vid:>4}  {mac}  {age:>3}").expect("a string has room");
    }
    Ok(text)
}

fn fdb_flush(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    named(control, arguments)?.bridge.flush_stations();
    Ok("table successfully flushed\n".to_owned())
}

/// How each table finds its rules, and what that takes.
fn tables(control: &mut Control, arguments: &[String]) -> Result<Told, String> {
    let name = arguments.first().ok_or("name a bridge")?;
    let program = control.tools.publication.load_full();
    let clock = control.tools.clock;
    let named = control.site_named(name);
    let (bridge, site) = named.ok_or_else(|| format!("no such bridge: {name}"))?;
    let lookups = Lookups {
        program,
        bridge,
        tables: site.bridge.describe_tables(),
        clock,
    };
    Ok(Box::new(move || lookups.tell()))
}

/// Which worker takes which port's frames.
fn workers(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(control.describe_workers())
}

/// Has a port's frames taken by other workers.
fn affinity(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let [bridge, port, cores] = arguments else {
        return Err("name a bridge, a port and cores, as in br0 eth1 2,3".to_owned());
    };
    let cores = parse_cores(cores).ok_or_else(|| format!("{cores}: not cores, each once"))?;
    let (id, _) = control
        .site_named(bridge)
        .ok_or_else(|| format!("no such bridge: {bridge}"))?;
    control.assign_to(id, port, &cores)?;
    Ok(String::new())
}

/// Tells the way of a frame that the flow accepts, or of these bytes.
fn trace(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let [_, flow, packet @ ..] = arguments else {
        return Err("name a bridge and a flow, as in br0 in_port=1,tcp,tp_dst=80".to_owned());
    };
    let matching: Match = flow.parse().map_err(|error| format!("{flow}: {error}"))?;
    let frame = packet.first().map(|digits| frame(digits)).transpose()?;
    let now = control.now();
    named(control, arguments)?
        .bridge
        .trace(&matching, frame, now)
}

/// The frame that is written in hexadecimal.
fn frame(digits: &str) -> Result<Frame, String> {
    let wrong = || format!("{digits}: not the bytes of a frame in hexadecimal");
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > Frame::LEN_MAX {
        return Err(wrong());
    }
    let byte = |at: usize| {
        let two = digits.get(at..at + 2)?;
        let plain = two.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(two, 16).ok().filter(|_| plain)
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Ok(Frame::from_bytes(&bytes.ok_or_else(wrong)?))
}

/// Every counter that is not zero, by place and name.
fn counters(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    if !arguments.is_empty() {
        named(control, arguments)?;
    }
    let mut lines = BTreeMap::new();
    for (name, count) in control.counters.read() {
        lines.insert(format!("control {name}"), count);
    }
    for worker in &control.tools.workers {
        for (name, count) in worker.counters.read() {
            *lines.entry(format!("worker {name}")).or_default() += count;
        }
    }
    for site in control.sites.values() {
        let bridge = site.bridge.name();
        if arguments.first().is_some_and(|wanted| wanted != bridge) {
            continue;
        }
        lines.insert(
            format!("{bridge} stations_evicted"),
            site.bridge.stations().evicted(),
        );
        lines.insert(
            format!("{bridge} learn_refused"),
            site.bridge.learn_refused(),
        );
        let limited = site.bridge.packet_ins_limited();
        lines.insert(format!("{bridge} packet_in_limited"), limited);
        for (port, of) in &site.ports {
            for (name, count) in of.told() {
                *lines
                    .entry(format!("{bridge} port {port} {name}"))
                    .or_default() += count;
            }
        }
        for (port, entry) in site.bridge.ports() {
            let counts = entry.counts();
            for (counter, name) in Counter::ALL {
                lines.insert(format!("{bridge} port {port} {name}"), counts[counter]);
            }
        }
    }
    let lines = lines.iter().filter(|(_, count)| **count != 0);
    Ok(lines
        .map(|(name, count)| format!("{name} {count}\n"))
        .collect())
}
