//! What all frames of a batch have in common: tables whose rules ask for nothing but the
//! port of arrival say the same to all of them. From the first table on, such tables
//! are looked into once a batch, as long as what they say does no more than lead on; and
//! what they count is written down at the end, as if each frame had been there.

use base::{PortNo, TableId};
use pipeline::{Rule, Totals};

use crate::classifier::View;
use crate::lanes::Lanes;
use crate::runner::{Seen, look_up};
use crate::steps::Brief;
use crate::tally::{TableTally, Tally};

/// Tables that are looked into beforehand.
const TABLES: usize = 16;

/// The way that is the same for all.
#[derive(Debug)]
pub(crate) struct Trunk<'a> {
    /// The rules that led on, and in which table each was found.
    rules: [Option<(TableId, &'a Rule)>; TABLES],
    len: usize,
    /// The frames that went it.
    weight: Totals,
    /// Where it ends.
    pub(crate) table: TableId,
    /// What that table says, if it is the same to all.
    pub(crate) seen: Option<Seen<'a>>,
}

impl<'a> Trunk<'a> {
    /// Of frames that come in by `from`. What is among the words is lost.
    pub(crate) fn of(view: &'a View, from: PortNo, lanes: &mut Lanes) -> Self {
        let mut trunk = Self::none();
        lanes.put_port(from);
        while let Some(seen) = common(view, trunk.table, lanes) {
            if let Seen::Found(Some(rule)) = seen
                && let Brief::Leads(next) = Brief::of(rule.instructions.inline_program())
                && trunk.len < TABLES
            {
                trunk.rules[trunk.len] = Some((trunk.table, rule));
                trunk.len += 1;
                trunk.table = next;
            } else {
                trunk.seen = Some(seen);
                break;
            }
        }
        trunk
    }

    /// One that ends where it begins, before the first table.
    pub(crate) const fn none() -> Self {
        Self {
            rules: [None; TABLES],
            len: 0,
            weight: Totals {
                packets: 0,
                bytes: 0,
            },
            table: TableId::FIRST,
            seen: None,
        }
    }

    /// How many lookups it spares.
    #[inline]
    pub(crate) fn len(&self) -> u16 {
        self.len.try_into().expect("there are not so many tables")
    }

    /// Frames of this weight have gone it.
    #[inline]
    pub(crate) const fn count(&mut self, weight: Totals) {
        self.weight.packets = self.weight.packets.wrapping_add(weight.packets);
        self.weight.bytes = self.weight.bytes.wrapping_add(weight.bytes);
    }

    /// Writes down what was counted.
    pub(crate) fn settle(&self, tables: &mut TableTally, tally: &mut Tally<'a>) {
        if self.weight.packets == 0 {
            return;
        }
        for (table, rule) in self.rules[..self.len].iter().flatten() {
            tally.found(*table, rule, self.weight, tables);
        }
    }
}

/// What a table says to all frames of this port; none if that is not all it asks for.
fn common<'a>(view: &'a View, table: TableId, lanes: &Lanes) -> Option<Seen<'a>> {
    let table = view.table(table);
    let asks = table.is_some_and(|table| table.parts.are_any() || table.uncompiled.is_some());
    (!asks).then(|| look_up(view, table, lanes))
}
