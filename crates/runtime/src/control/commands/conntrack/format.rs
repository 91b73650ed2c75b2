//! Text of connections and their numbers, in the format of Open vSwitch (`ct_dpif_format_entry`,
//! `dpctl/ct-stats-show`, `dpctl/ct-bkts`).

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use conntrack::{
    ConnectionInfo, ConnectionKey, KeyProtocol, ProtocolInfo, SctpPhase, TcpEnd, TcpEndState,
};

/// The buckets in a line of `dpctl/ct-bkts`.
const BUCKETS_PER_LINE: usize = 8;

/// Protocols with a name, and their names in statistics, in their order.
const PROTOCOLS: [(u8, &str, &str); 8] = [
    (6, "tcp", "TCP"),
    (17, "udp", "UDP"),
    (136, "udplite", "UDPLITE"),
    (132, "sctp", "SCTP"),
    (1, "icmp", "ICMP"),
    (33, "dccp", "DCCP"),
    (2, "igmp", "IGMP"),
    (58, "icmpv6", ""),
];

/// A connection as a line of `dpctl/dump-conntrack`.
pub(super) struct ConnectionLine<'a> {
    pub(super) connection: &'a ConnectionInfo,
    /// Shows the parts that `-m` adds. As in Open vSwitch's userspace, the id and the status are zero.
    pub(super) is_verbose: bool,
    /// Shows the parts that `-s` adds. As in Open vSwitch's userspace, packets are not counted.
    pub(super) has_statistics: bool,
}

impl fmt::Display for ConnectionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        let original = &connection.original;
        write_protocol(f, original.protocol)?;
        f.write_str(",orig=(")?;
        write_tuple(f, original)?;
        f.write_str("),reply=(")?;
        write_tuple(f, &connection.reply)?;
        f.write_str(")")?;
        if self.is_verbose {
            f.write_str(",id=0")?;
        }
        if original.zone.0 != 0 {
            write!(f, ",zone={}", original.zone.0)?;
        }
        if self.is_verbose {
            f.write_str(",status=0")?;
        }
        if self.has_statistics {
            write!(f, ",timeout={}", connection.timeout.as_secs())?;
        }
        if connection.mark != 0 {
            write!(f, ",mark={}", connection.mark)?;
        }
        if connection.label != 0 {
            write!(f, ",labels={:#x}", connection.label)?;
        }
        self.write_protocol_state(f)?;
        if let Some(helper) = connection.helper {
            write!(f, ",helper={}", helper.name())?;
        }
        match &connection.parent {
            Some(parent) if self.is_verbose => {
                f.write_str(",parent=(")?;
                write_tuple(f, parent)?;
                f.write_str(")")
            }
            _ => Ok(()),
        }
    }
}

impl ConnectionLine<'_> {
    fn write_protocol_state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.connection.protocol {
            ProtocolInfo::Tcp([original, reply]) if self.is_verbose => {
                let (from, to) = (tcp_name(original.state), tcp_name(reply.state));
                write!(f, ",protoinfo=(state_orig={from},state_reply={to}")?;
                let scales = [original, reply].map(|end| end.window_scale().unwrap_or(0));
                if scales != [0, 0] {
                    let [original, reply] = scales;
                    write!(f, ",wscale_orig={original},wscale_reply={reply}")?;
                }
                let (original, reply) = (tcp_flags(original), tcp_flags(reply));
                write!(f, ",flags_orig={original},flags_reply={reply})")
            }
            ProtocolInfo::Tcp(ends) => {
                write!(f, ",protoinfo=(state={})", tcp_name(tcp_state(ends)))
            }
            // Verification tags are not tracked.
            ProtocolInfo::Sctp(phase) => {
                let state = sctp_name(*phase);
                write!(f, ",protoinfo=(state={state},vtag_orig=0,vtag_reply=0)")
            }
            ProtocolInfo::None => Ok(()),
        }
    }
}

fn write_protocol(f: &mut fmt::Formatter<'_>, KeyProtocol(protocol): KeyProtocol) -> fmt::Result {
    let row = PROTOCOLS.iter().find(|(number, ..)| *number == protocol);
    match row {
        Some((_, name, _)) => f.write_str(name),
        None => write!(f, "{protocol}"),
    }
}

/// Writes the addresses, and the ports or the parts of ICMP.
fn write_tuple(f: &mut fmt::Formatter<'_>, key: &ConnectionKey) -> fmt::Result {
    let [src, dst] = [&key.src, &key.dst].map(|end| end.address.to_ip(key.family));
    write!(f, "src={src},dst={dst}")?;
    if key.protocol.is_icmp() {
        // The code of a query is zero.
        let (id, message_type) = (key.src.port, key.src.message_type);
        write!(f, ",id={id},type={message_type},code=0")
    } else {
        write!(f, ",sport={},dport={}", key.src.port, key.dst.port)
    }
}

const fn tcp_name(state: TcpEndState) -> &'static str {
    match state {
        TcpEndState::Closed => "CLOSED",
        TcpEndState::SynSent => "SYN_SENT",
        TcpEndState::Established => "ESTABLISHED",
        TcpEndState::Closing => "CLOSING",
        TcpEndState::FinWait2 => "FIN_WAIT_2",
        TcpEndState::TimeWait => "TIME_WAIT",
    }
}

/// Returns the state of a connection: that of the end that is further. As in Open vSwitch, it has
/// one state for the two last ones, as the kernel's tracker.
fn tcp_state([original, reply]: &[TcpEnd; 2]) -> TcpEndState {
    match original.state.max(reply.state) {
        TcpEndState::FinWait2 => TcpEndState::TimeWait,
        state => state,
    }
}

const fn tcp_flags(end: &TcpEnd) -> &'static str {
    match (end.window_scale(), end.is_liberal()) {
        (Some(_), _) => "WINDOW_SCALE",
        (None, true) => "BE_LIBERAL",
        (None, false) => "0",
    }
}

/// Returns the state with the nearest meaning in the kernel's tracker.
const fn sctp_name(phase: SctpPhase) -> &'static str {
    match phase {
        SctpPhase::Opening => "COOKIE_WAIT",
        SctpPhase::Established => "ESTABLISHED",
        SctpPhase::Closing => "SHUTDOWN_SENT",
        SctpPhase::Closed => "CLOSED",
    }
}

/// Numbers of connections (`dpctl/ct-stats-show`).
#[derive(Default)]
pub(super) struct ConnectionStatistics {
    total: u64,
    protocols: BTreeMap<u8, u64>,
    tcp_states: BTreeMap<TcpEndState, u64>,
}

impl ConnectionStatistics {
    /// Counts a connection.
    pub(super) fn add(&mut self, connection: &ConnectionInfo) {
        let KeyProtocol(protocol) = connection.original.protocol;
        self.total += 1;
        *self.protocols.entry(protocol).or_default() += 1;
        if let ProtocolInfo::Tcp(ends) = &connection.protocol {
            *self.tcp_states.entry(tcp_state(ends)).or_default() += 1;
        }
    }

    /// Formats the numbers; those of TCP's states too if `is_verbose`.
    pub(super) fn format(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        self.write(&mut text, is_verbose)
            .expect("a string has room");
        text
    }

    fn write(&self, text: &mut String, is_verbose: bool) -> fmt::Result {
        write!(text, "Connections Stats:\n    Total: {}\n", self.total)?;
        for (protocol, _, name) in PROTOCOLS {
            // As in Open vSwitch, the number of ICMPv6 is not shown.
            let Some(count) = self.protocols.get(&protocol).filter(|_| !name.is_empty()) else {
                continue;
            };
            writeln!(text, "  {name}: {count}")?;
            if name == "TCP" && is_verbose {
                text.push_str("    Conn per TCP states:\n");
                for (state, count) in &self.tcp_states {
                    writeln!(text, "\t  [{}]={count}", tcp_name(*state))?;
                }
            }
        }
        let is_named = |number: &u8| PROTOCOLS.iter().any(|(named, ..)| named == number);
        let others = self.protocols.iter();
        let others = others.filter(|(number, _)| !is_named(number));
        let others: u64 = others.map(|(_, count)| count).sum();
        if others > 0 {
            writeln!(text, "  Other: {others}")?;
        }
        Ok(())
    }
}

/// Formats the number of connections of each bucket; a point stands for `threshold` or fewer.
pub(super) fn buckets(lens: &[usize], threshold: usize) -> String {
    let mut text = String::new();
    write_buckets(&mut text, lens, threshold).expect("a string has room");
    text
}

fn write_buckets(text: &mut String, lens: &[usize], threshold: usize) -> fmt::Result {
    let total: usize = lens.iter().sum();
    let count = lens.len();
    write!(
        text,
        "Total Buckets: {count}\nCurrent Connections: {total}\n\n"
    )?;
    if total == 0 {
        return Ok(());
    }
    let line = "+-----------+-----------------------------------------+";
    write!(
        text,
        "{line}\n|  Buckets  |         Connections per Buckets         |\n{line}"
    )?;
    for (number, lens) in lens.chunks(BUCKETS_PER_LINE).enumerate() {
        let first = number * BUCKETS_PER_LINE;
        write!(
            text,
            "\n {first:3}..{:3}   | ",
            first + BUCKETS_PER_LINE - 1
        )?;
        for len in lens {
            if *len > threshold {
                write!(text, "{len:5}")?;
            } else {
                write!(text, "{:>5}", ".")?;
            }
        }
    }
    text.write_str("\n\n")
}

#[cfg(test)]
mod tests;
