//! Tests that a version refuses messages that it lacks with its own error.

use flow::Refusal;

use super::{
    EXPERIMENTER_MESSAGE, EXPERIMENTER_MULTIPART, MessageKind, MessageKindRow, MultipartKindRow,
    TypeNumber,
};
use crate::Message;
use crate::experimenter::{NICIRA, ONF};
use crate::header::Header;
use crate::version::Version;

/// The refusal of a message with this body, if it is refused.
fn refusal(version: Version, kind: u8, body: &[u8]) -> Option<Refusal> {
    let length = u16::try_from(Header::LENGTH + body.len()).expect("short");
    let mut bytes = vec![version.number(), kind];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, 7]);
    bytes.extend(body);
    Message::decode(&bytes, version)
        .err()
        .map(|malformed| malformed.refusal)
}

#[test]
fn message_type_missing_in_version_is_refused() {
    for version in Version::ALL {
        for kind in 0..=u8::MAX {
            let absent =
                MessageKindRow::by_number(TypeNumber::Standard(kind.into()), version).is_none();
            if absent && u16::from(kind) != EXPERIMENTER_MESSAGE {
                let refusal = refusal(version, kind, &[0; 64]);
                assert_eq!(refusal, Some(Refusal::RequestBadType), "{version}: {kind}");
            }
        }
    }
}

#[test]
fn multipart_type_missing_in_version_is_refused() {
    for version in Version::ALL {
        let request =
            MessageKindRow::by_kind(MessageKind::MultipartRequest, version).map(|row| row.number);
        let Some(TypeNumber::Standard(request)) = request else {
            panic!("all versions have requests");
        };
        for part in (0..64).chain(u16::MAX - 64..EXPERIMENTER_MULTIPART) {
            if MultipartKindRow::by_number(TypeNumber::Standard(part), version).is_none() {
                let body = [&part.to_be_bytes()[..], &[0; 64]].concat();
                let kind = request.try_into().expect("a byte");
                let refusal = refusal(version, kind, &body);
                assert_eq!(
                    refusal,
                    Some(Refusal::RequestBadMultipart),
                    "{version}: {part}"
                );
            }
        }
    }
}

#[test]
fn unknown_experimenter_message_is_refused() {
    let kind = EXPERIMENTER_MESSAGE.try_into().expect("a byte");
    let body = |experimenter: u32, number: u32| {
        [
            &experimenter.to_be_bytes()[..],
            &number.to_be_bytes(),
            &[0; 64],
        ]
        .concat()
    };
    for version in Version::ALL {
        for experimenter in [0, 1, NICIRA + 1, u32::MAX] {
            let refusal = refusal(version, kind, &body(experimenter, 0));
            assert_eq!(refusal, Some(Refusal::RequestBadExperimenter), "{version}");
        }
        for (experimenter, number) in (0..64)
            .map(|n| (NICIRA, n))
            .chain((2295..2320).map(|n| (ONF, n)))
        {
            let known = TypeNumber::of(experimenter, number)
                .and_then(|number| MessageKindRow::by_number(number, version));
            if known.is_none() {
                let refusal = refusal(version, kind, &body(experimenter, number));
                let unknown = Some(Refusal::RequestBadExperimenterType);
                assert_eq!(refusal, unknown, "{version}: {experimenter:#x} {number}");
            }
        }
    }
}
