//! Table-mod (OF 1.1.0, A.3.3; OF 1.3.5, 7.3.3; OF 1.4.1, 7.3.4.1). In 1.1 and 1.2 two bits select
//! the handling of table misses; 1.3 keeps the bits without an effect. In 1.4 other bits enable
//! eviction and vacancy events, and properties have their parameters. Table descriptions and
//! table-status have the same properties.

use base::TableId;
use flow::{
    EvictionFlags, Refusal, TableDesc, TableFlags, TableMod, TableReason, TableStatus, Vacancy,
    VacancyLimits,
};

use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::version::Version;

/// `OFPTMPT_EVICTION` and `OFPTMPT_VACANCY`.
const EVICTION: u16 = 2;
const VACANCY: u16 = 3;

/// `OFPTR_VACANCY_DOWN` and `OFPTR_VACANCY_UP`, also used in the masks of asynchronous messages.
const VACANCY_DOWN: u8 = 3;
const VACANCY_UP: u8 = 4;

/// The configuration bits of a version.
const fn known_config(version: Version) -> u32 {
    match version {
        Version::V10 => 0,
        // OFPTC_TABLE_MISS_MASK; from 1.3 on OFPTC_DEPRECATED_MASK.
        Version::V11 | Version::V12 | Version::V13 => TableFlags::DEPRECATED.0,
        Version::V14 | Version::V15 => 0xf,
    }
}

const fn has_properties(version: Version) -> bool {
    matches!(version, Version::V14 | Version::V15)
}

/// The values of the properties.
#[derive(Clone, Copy, Default)]
struct TableProperties {
    eviction: Option<EvictionFlags>,
    vacancy: Option<Vacancy>,
}

impl WireFormat for TableMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = TableId(r.u8()?);
        r.skip(3)?;
        let unknown = r.fail(Refusal::TableModBadConfig);
        let config = r.u32()?;
        if config & !known_config(r.version()) != 0 {
            return Err(unknown);
        }
        let start = r.clone();
        let properties = match has_properties(r.version()) {
            true => decode_properties(r)?,
            false => TableProperties::default(),
        };
        // Only the switch sets the present vacancy (OF 1.4.1, 7.3.4.1).
        if properties.vacancy.is_some_and(|vacancy| vacancy.now != 0) {
            return Err(start.fail(Refusal::PropertyBadValue));
        }
        Ok(Self {
            table,
            config: TableFlags(config),
            eviction: properties.eviction,
            vacancy: properties.vacancy.map(|vacancy| vacancy.limits),
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.config.0 & !known_config(w.version()) != 0 {
            return Err(w.unsupported("this table configuration"));
        }
        w.u8(self.table.0);
        w.zeros(3);
        w.u32(self.config.0);
        let properties = TableProperties {
            eviction: self.eviction,
            vacancy: self.vacancy.map(|limits| Vacancy { limits, now: 0 }),
        };
        match (has_properties(w.version()), self.eviction, self.vacancy) {
            (true, ..) => encode_properties(properties, w),
            (false, None, None) => Ok(()),
            (false, ..) => Err(w.unsupported("parameters of eviction or vacancy events")),
        }
    }
}

fn decode_properties(r: &mut Reader<'_>) -> Result<TableProperties, Malformed> {
    let mut properties = TableProperties::default();
    while !r.is_empty() {
        let mut property = property::next(r)?;
        let duplicate = property.fail(Refusal::PropertyDuplicate);
        let bad_length = property.fail(Refusal::PropertyBadLength);
        let bad_value = property.fail(Refusal::PropertyBadValue);
        if matches!(property.kind, EVICTION | VACANCY) && property.value.len() != 4 {
            return Err(bad_length);
        }
        let is_new = match property.kind {
            EVICTION => {
                let flags = EvictionFlags(property.value.u32()?);
                properties.eviction.replace(flags).is_none()
            }
            VACANCY => {
                let [down, up, now, _] = property.value.take()?;
                if down > up || up > 100 || now > 100 {
                    return Err(bad_value);
                }
                let limits = VacancyLimits { down, up };
                properties
                    .vacancy
                    .replace(Vacancy { limits, now })
                    .is_none()
            }
            _ => return Err(property.unknown()),
        };
        if !is_new {
            return Err(duplicate);
        }
    }
    Ok(properties)
}

fn encode_properties(properties: TableProperties, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if let Some(EvictionFlags(flags)) = properties.eviction {
        property::put_u32(EVICTION, flags, w)?;
    }
    if let Some(Vacancy { limits, now }) = properties.vacancy {
        property::put(VACANCY, w, |w| {
            w.bytes(&[limits.down, limits.up, now, 0]);
            Ok(())
        })?;
    }
    Ok(())
}

impl WireFormat for TableDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(r.clone().u16()?);
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(2)?;
        let table = TableId(r.u8()?);
        r.skip(1)?;
        let config = TableFlags(r.u32()?);
        let properties = decode_properties(&mut r)?;
        Ok(Self {
            table,
            config,
            eviction: properties.eviction,
            vacancy: properties.vacancy,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let properties = TableProperties {
            eviction: self.eviction,
            vacancy: self.vacancy,
        };
        w.nested(0, |w| {
            w.u16(0);
            w.u8(self.table.0);
            w.zeros(1);
            w.u32(self.config.0);
            encode_properties(properties, w)
        })
        .map(drop)
    }
}

/// The number of a reason, also used in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: TableReason) -> u8 {
    match reason {
        TableReason::VacancyDown => VACANCY_DOWN,
        TableReason::VacancyUp => VACANCY_UP,
    }
}

impl WireFormat for TableStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let unknown = r.fail(Refusal::RequestBadType);
        let reason = match r.u8()? {
            VACANCY_DOWN => TableReason::VacancyDown,
            VACANCY_UP => TableReason::VacancyUp,
            _ => return Err(unknown),
        };
        r.skip(7)?;
        let table = TableDesc::decode(r)?;
        Ok(Self { reason, table })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u8(reason_number(self.reason));
        w.zeros(7);
        self.table.encode(w)
    }
}
