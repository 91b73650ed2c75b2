//! Reader and writer of meters, in the form of `ovs-ofctl` 3.1.
//!
//! ```text
//! meter = [command] "meter=" number "," ("kbps" | "pktps") {"," flag} "," "bands=" band {"," band}
//! band  = "type=" kind {"," name "=" number}
//! ```

use std::fmt;

use base::MeterId;

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::number::number;
use crate::meter::{Band, BandKind, MeterConfig, MeterFlags, MeterMod, MeterModCommand};

/// The commands by their words.
const COMMANDS: [(MeterModCommand, &str); 3] = [
    (MeterModCommand::Add, "add"),
    (MeterModCommand::Modify, "modify"),
    (MeterModCommand::Delete, "delete"),
];

/// The flags by name, in the order of printing.
const FLAGS: [(MeterFlags, &str); 4] = [
    (MeterFlags::KBPS, "kbps"),
    (MeterFlags::PKTPS, "pktps"),
    (MeterFlags::BURST, "burst"),
    (MeterFlags::STATS, "stats"),
];

/// Meters that have a name.
const NAMED: [(MeterId, &str); 3] = [
    (MeterId::SLOWPATH, "slowpath"),
    (MeterId::CONTROLLER, "controller"),
    (MeterId::ALL, "all"),
];

/// Splits the command from the front of a line.
pub(super) fn command(line: Token<'_>) -> (MeterModCommand, Token<'_>) {
    let (command, rest) = line.strip_keyword(&COMMANDS);
    (command.unwrap_or(MeterModCommand::Add), rest)
}

/// Parses a meter-mod after its command.
pub(super) fn meter_mod(command: MeterModCommand, line: Token<'_>) -> Result<MeterMod, ParseError> {
    let mut flags = MeterFlags::default();
    let (mut meter, mut bands) = (None, Vec::new());
    let mut items = KeyValues::new(line);
    while let Some(item) = items.next_pair()? {
        let flag = FLAGS.iter().find(|(_, name)| *name == item.key.text);
        match (item.key.text, flag) {
            (_, Some((flag, _))) => {
                item.reject_value()?;
                flags = flags.with(*flag);
            }
            ("meter", None) => meter = Some(meter_id(item.required_value()?)?),
            ("band" | "bands", None) => {
                let (_, behind) = line.split_at(item.key.at - line.at + item.key.text.len());
                bands = read_bands(behind.split_at(behind.text.len().min(1)).1)?;
                break;
            }
            _ => return Err(item.key.error("unknown key of a meter")),
        }
    }
    let end = line.split_at(line.text.len()).1;
    let meter = match (meter, command) {
        (Some(meter), _) => meter,
        (None, MeterModCommand::Delete) => MeterId::ALL,
        (None, _) => return Err(end.error("missing meter: `meter=`")),
    };
    if command != MeterModCommand::Delete && bands.is_empty() {
        return Err(end.error("missing bands: `bands=`"));
    }
    Ok(MeterMod {
        command,
        flags,
        meter,
        bands,
    })
}

/// Reads a meter's number or name.
fn meter_id(token: Token<'_>) -> Result<MeterId, ParseError> {
    match NAMED.iter().find(|(_, name)| *name == token.text) {
        Some((meter, _)) => Ok(*meter),
        None => number(token).map(MeterId),
    }
}

/// Parses bands; each begins with `type=`, with an optional `band=` before it.
fn read_bands(text: Token<'_>) -> Result<Vec<Band>, ParseError> {
    let mut bands: Vec<BandDraft<'_>> = Vec::new();
    let mut items = KeyValues::new(text);
    while let Some(mut item) = items.next_pair()? {
        if matches!(item.key.text, "band" | "bands") {
            match KeyValues::new(item.required_value()?).next_pair()? {
                Some(first) => item = first,
                None => return Err(item.key.error("missing band")),
            }
        }
        match (item.key.text, bands.last_mut()) {
            ("type", _) => bands.push(BandDraft::new(item)?),
            (_, Some(band)) => band.take(item)?,
            (_, None) => return Err(item.key.error("a band begins with `type=`")),
        }
    }
    bands.into_iter().map(BandDraft::finish).collect()
}

/// A band as far as it was read.
struct BandDraft<'a> {
    key: Token<'a>,
    remarks: bool,
    level: Option<u8>,
    rate: Option<u32>,
    burst: u32,
}

impl<'a> BandDraft<'a> {
    fn new(item: KeyValue<'a>) -> Result<Self, ParseError> {
        let kind = item.required_value()?;
        let remarks = match kind.text {
            "drop" => false,
            "dscp_remark" => true,
            _ => return Err(kind.error("expected drop or dscp_remark")),
        };
        Ok(Self {
            key: item.key,
            remarks,
            level: None,
            rate: None,
            burst: 0,
        })
    }

    fn take(&mut self, item: KeyValue<'_>) -> Result<(), ParseError> {
        match item.key.text {
            "rate" => self.rate = Some(number(item.required_value()?)?),
            "burst_size" => self.burst = number(item.required_value()?)?,
            "prec_level" if self.remarks => self.level = Some(number(item.required_value()?)?),
            _ => return Err(item.key.error("unknown key of such a band")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Band, ParseError> {
        let missing = |what: &str| self.key.error(format!("missing `{what}=` of the band"));
        Ok(Band {
            kind: match (self.remarks, self.level) {
                (false, _) => BandKind::Drop,
                (true, Some(level)) => BandKind::DscpRemark(level),
                (true, None) => return Err(missing("prec_level")),
            },
            rate: self.rate.ok_or_else(|| missing("rate"))?,
            burst: self.burst,
        })
    }
}

/// A meter's number or name.
struct MeterName(MeterId);

impl fmt::Display for MeterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(meter, _)| *meter == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", self.0.0),
        }
    }
}

impl fmt::Display for MeterConfig {
    /// Writes the meter like `ovs-ofctl dump-meters`, one line for each band.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_meter(f, self.meter, self.flags, &self.bands, [" ", "\n"])
    }
}

impl fmt::Display for MeterMod {
    /// Writes one line, which reads as the same meter-mod.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = COMMANDS
            .iter()
            .find(|(command, _)| *command == self.command)
            .expect("the table has every command");
        write!(f, "{word} ")?;
        match self.command {
            MeterModCommand::Delete => write!(f, "meter={}", MeterName(self.meter)),
            MeterModCommand::Add | MeterModCommand::Modify => {
                write_meter(f, self.meter, self.flags, &self.bands, [",", ","])
            }
        }
    }
}

/// Writes a meter with the given separators between words and between bands.
fn write_meter(
    f: &mut fmt::Formatter<'_>,
    meter: MeterId,
    flags: MeterFlags,
    bands: &[Band],
    [word, line]: [&str; 2],
) -> fmt::Result {
    write!(f, "meter={}", MeterName(meter))?;
    for (flag, name) in FLAGS {
        if flags.contains(flag) {
            write!(f, "{word}{name}")?;
        }
    }
    write!(f, "{word}bands=")?;
    for (index, band) in bands.iter().enumerate() {
        // In one line, no separator precedes the first band.
        let between = if index == 0 && line == word { "" } else { line };
        let kind = match band.kind {
            BandKind::Drop => "drop",
            BandKind::DscpRemark(_) => "dscp_remark",
        };
        write!(f, "{between}type={kind}{word}rate={}", band.rate)?;
        if flags.contains(MeterFlags::BURST) {
            write!(f, "{word}burst_size={}", band.burst)?;
        }
        if let BandKind::DscpRemark(level) = band.kind {
            write!(f, "{word}prec_level={level}")?;
        }
    }
    Ok(())
}
