//! Properties: type-length-value lists, with which OpenFlow 1.4 replaced fixed structures
//! (OF 1.4.1, 7.2.1; OF 1.5.1, 7.2.1). The length includes the header but not the padding to eight
//! bytes.
//!
//! The codec of each message defines its properties.

use flow::Refusal;

use crate::codec::{EncodeError, Malformed, Reader, Writer};

/// Bytes of a property's header.
const HEAD: usize = 4;

/// The type of an experimenter property.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// A property: its type, its offset and its value.
pub(crate) struct Property<'a> {
    pub(crate) kind: u16,
    /// The start of the property, for errors about all of it.
    start: Reader<'a>,
    pub(crate) value: Reader<'a>,
}

impl Property<'_> {
    /// `refusal` at the start of the property.
    pub(crate) const fn fail(&self, refusal: Refusal) -> Malformed {
        self.start.fail(refusal)
    }

    /// The refusal of an unknown property.
    pub(crate) const fn unknown(&self) -> Malformed {
        self.fail(match self.kind {
            EXPERIMENTER => Refusal::PropertyBadExperimenter,
            _ => Refusal::PropertyBadType,
        })
    }

    /// Checks a property that is skipped: that of an experimenter has the experimenter's id, which
    /// is not zero, and a type.
    pub(crate) fn check_skipped(&self) -> Result<(), Malformed> {
        if self.kind != EXPERIMENTER {
            return Ok(());
        }
        let mut head = self.value.clone().on_short(Refusal::PropertyBadLength);
        match (head.u32()?, head.u32()?) {
            (0, _) => Err(self.fail(Refusal::PropertyBadExperimenter)),
            _ => Ok(()),
        }
    }
}

/// Reads the next property and its padding.
pub(crate) fn next<'a>(r: &mut Reader<'a>) -> Result<Property<'a>, Malformed> {
    let start = r.clone();
    let mut head = r.clone().on_short(Refusal::PropertyBadLength);
    let (kind, length) = (head.u16()?, usize::from(head.u16()?));
    if length < HEAD {
        return Err(start.fail(Refusal::PropertyBadLength));
    }
    let mut whole = r.sub_or(length.next_multiple_of(8), Refusal::PropertyBadLength)?;
    whole.skip(HEAD)?;
    Ok(Property {
        kind,
        start,
        value: whole.sub(length - HEAD)?,
    })
}

/// Appends a property and its padding.
pub(crate) fn put(
    kind: u16,
    w: &mut Writer<'_>,
    value: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    w.nested_padded(2, |w| {
        w.u16(kind);
        w.u16(0);
        value(w)
    })
    .map(drop)
}

/// Appends a property with one number.
pub(crate) fn put_u32(kind: u16, value: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        w.u32(value);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::version::Version;

    const V14: Dialect = Dialect::new(Version::V14);

    fn refusal(bytes: &[u8]) -> Option<Refusal> {
        next(&mut Reader::new(bytes, V14))
            .err()
            .map(|malformed| malformed.refusal)
    }

    #[test]
    fn property_length_includes_head_but_not_padding() {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out, V14);
        put(7, &mut w, |w| {
            w.u8(1);
            Ok(())
        })
        .expect("it is short");
        put_u32(8, 9, &mut w).expect("it is short");
        assert_eq!(out, [0, 7, 0, 5, 1, 0, 0, 0, 0, 8, 0, 8, 0, 0, 0, 9]);
        let mut r = Reader::new(&out, V14);
        let first = next(&mut r).expect("it is whole");
        assert_eq!((first.kind, first.value.len()), (7, 1));
        let mut second = next(&mut r).expect("it is whole");
        assert_eq!((second.kind, second.value.u32()), (8, Ok(9)));
        assert!(r.is_empty());
    }

    #[test]
    fn property_with_wrong_length_is_refused() {
        let bad = Some(Refusal::PropertyBadLength);
        assert_eq!(refusal(&[0, 1, 0, 3, 0, 0, 0, 0]), bad);
        assert_eq!(refusal(&[0, 1, 0, 9, 0, 0, 0, 0]), bad);
        assert_eq!(refusal(&[0, 1, 0]), bad);
        assert_eq!(refusal(&[0, 1, 0, 4, 0, 0, 0, 0]), None);
    }
}
