//! Writer of whole lines: flow-mods in the form of flow files, and rules with their statistics like
//! `ovs-ofctl dump-flows`.

use std::fmt;
use std::time::Duration;

use base::{Cookie, GroupId, PortNo, TableId};

use super::match_write::{CommaList, write_match};
use super::name_map::{NameMap, WithNames};
use crate::command::{FlowFlags, FlowMod, FlowModCommand};
use crate::statistics::FlowStats;

/// Default priority in the text form (`OFP_DEFAULT_PRIORITY`).
pub const DEFAULT_PRIORITY: u16 = 0x8000;

/// The commands by the words of flow files.
pub(super) const COMMANDS: [(FlowModCommand, &str); 5] = [
    (FlowModCommand::Add, "add"),
    (FlowModCommand::Modify, "modify"),
    (FlowModCommand::ModifyStrict, "modify_strict"),
    (FlowModCommand::Delete, "delete"),
    (FlowModCommand::DeleteStrict, "delete_strict"),
];

/// The flags by name, in the order of printing.
pub(super) const FLAGS: [(FlowFlags, &str); 5] = [
    (FlowFlags::SEND_FLOW_REMOVED, "send_flow_rem"),
    (FlowFlags::CHECK_OVERLAP, "check_overlap"),
    (FlowFlags::RESET_COUNTS, "reset_counts"),
    (FlowFlags::NO_PACKET_COUNTS, "no_packet_counts"),
    (FlowFlags::NO_BYTE_COUNTS, "no_byte_counts"),
];

impl fmt::Display for FlowModCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = COMMANDS
            .iter()
            .find(|(command, _)| command == self)
            .expect("the table has every command");
        f.write_str(word)
    }
}

impl fmt::Display for FlowMod {
    /// Writes a line of a flow file, which reads as the same flow-mod. Parts that the command
    /// ignores (a priority in a loose deletion) and buffers are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
        write!(f, "{} ", self.command)?;
        let mut list = CommaList::new(f);
        match self.table {
            TableId::ALL => list.next()?.write_str("table=ALL")?,
            table => write!(list.next()?, "table={table}")?,
        }
        if self.command != Delete && self.priority != DEFAULT_PRIORITY {
            write!(list.next()?, "priority={}", self.priority)?;
        }
        match self.command {
            Add | Modify | ModifyStrict => self.write_attributes(&mut list)?,
            Delete | DeleteStrict => self.write_filter(&mut list)?,
        }
        write_match(&mut list, &self.matching, NameMap::empty())?;
        match self.command {
            Add | Modify | ModifyStrict => write!(f, " actions={}", self.instructions),
            Delete | DeleteStrict => Ok(()),
        }
    }
}

impl FlowMod {
    /// Writes the attributes of added or modified rules.
    fn write_attributes(&self, list: &mut CommaList<'_, '_>) -> fmt::Result {
        let given = match self.command {
            FlowModCommand::Add => Some(self.cookie).filter(|cookie| *cookie != Cookie(0)),
            _ => self.new_cookie,
        };
        if self.command != FlowModCommand::Add {
            self.write_cookie_filter(list)?;
        }
        if let Some(cookie) = given {
            write!(list.next()?, "cookie=0x{:x}", cookie.0)?;
        }
        if self.idle_timeout_s != 0 {
            write!(list.next()?, "idle_timeout={}", self.idle_timeout_s)?;
        }
        if self.hard_timeout_s != 0 {
            write!(list.next()?, "hard_timeout={}", self.hard_timeout_s)?;
        }
        if self.importance != 0 {
            write!(list.next()?, "importance={}", self.importance)?;
        }
        for (flag, name) in FLAGS {
            if self.flags.contains(flag) {
                list.next()?.write_str(name)?;
            }
        }
        Ok(())
    }

    /// Writes the filter of a deletion, except for the match.
    fn write_filter(&self, list: &mut CommaList<'_, '_>) -> fmt::Result {
        self.write_cookie_filter(list)?;
        if self.out_port != PortNo::ANY {
            write!(list.next()?, "out_port={}", self.out_port)?;
        }
        if self.out_group != GroupId::ANY {
            write!(list.next()?, "out_group={}", self.out_group.0)?;
        }
        Ok(())
    }

    /// Writes which cookies the rules must have.
    fn write_cookie_filter(&self, list: &mut CommaList<'_, '_>) -> fmt::Result {
        let (cookie, mask) = (self.cookie.0, self.cookie_mask);
        match mask {
            0 => Ok(()),
            _ => write!(list.next()?, "cookie=0x{cookie:x}/0x{mask:x}"),
        }
    }
}

impl fmt::Display for FlowStats {
    /// Writes the line of `ovs-ofctl dump-flows` without its leading space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, FlowStats> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(stats, names) = *self;
        write!(f, "cookie=0x{:x}, duration=", stats.cookie.0)?;
        write_duration(f, stats.duration)?;
        write!(f, ", table={}, ", WithNames(&stats.table, names))?;
        write!(f, "n_packets={}, n_bytes={}, ", stats.packets, stats.bytes)?;
        write_timeouts(f, stats)?;
        write!(f, "idle_age={}, ", stats.idle_age.as_secs())?;
        if stats.hard_age.as_secs() != stats.duration.as_secs() {
            write!(f, "hard_age={}, ", stats.hard_age.as_secs())?;
        }
        write_rule(f, stats, names)
    }
}

/// A rule without its statistics: the line of `ovs-ofctl --no-stats dump-flows`.
#[derive(Clone, Copy, Debug)]
pub struct FlowWithoutStats<'a>(pub &'a FlowStats);

impl fmt::Display for FlowWithoutStats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, FlowWithoutStats<'_>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(FlowWithoutStats(stats), names) = *self;
        if stats.cookie.0 != 0 {
            write!(f, "cookie=0x{:x}, ", stats.cookie.0)?;
        }
        if stats.table != TableId::FIRST {
            write!(f, "table={}, ", WithNames(&stats.table, names))?;
        }
        write_timeouts(f, stats)?;
        write_rule(f, stats, names)
    }
}

/// Writes timeouts, flags and importance.
fn write_timeouts(f: &mut fmt::Formatter<'_>, stats: &FlowStats) -> fmt::Result {
    if stats.idle_timeout_s != 0 {
        write!(f, "idle_timeout={}, ", stats.idle_timeout_s)?;
    }
    if stats.hard_timeout_s != 0 {
        write!(f, "hard_timeout={}, ", stats.hard_timeout_s)?;
    }
    for (flag, name) in FLAGS {
        if stats.flags.contains(flag) {
            write!(f, "{name} ")?;
        }
    }
    if stats.importance != 0 {
        write!(f, "importance={}, ", stats.importance)?;
    }
    Ok(())
}

/// Writes priority, match and instructions.
fn write_rule(f: &mut fmt::Formatter<'_>, stats: &FlowStats, names: &NameMap) -> fmt::Result {
    let mut list = CommaList::new(f);
    if stats.priority != DEFAULT_PRIORITY {
        write!(list.next()?, "priority={}", stats.priority)?;
    }
    write_match(&mut list, &stats.matching, names)?;
    let space = if list.is_empty() { "" } else { " " };
    write!(
        f,
        "{space}actions={}",
        WithNames(&stats.instructions, names)
    )
}

/// Writes seconds: whole ones without decimals, others with three decimals if that is exact, else
/// with as many as necessary.
fn write_duration(f: &mut fmt::Formatter<'_>, duration: Duration) -> fmt::Result {
    write!(f, "{}", duration.as_secs())?;
    match duration.subsec_nanos() {
        0 => {}
        nanos if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000)?,
        nanos => f.write_str(format!(".{nanos:09}").trim_end_matches('0'))?,
    }
    f.write_str("s")
}
