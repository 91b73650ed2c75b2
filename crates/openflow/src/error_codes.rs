//! The table of error numbers: the type and code of each refusal in each version.
//!
//! A row has two entries: one for OpenFlow 1.0 and one for all later versions. Versions that lack
//! the second number, or have another one, are in a table of exceptions.
//!
//! If a version has no number of its own, OpenFlow 1.0 and 1.1 use Nicira's (as Open vSwitch does;
//! most of these errors concern Nicira's messages), and the others use the nearest number that they
//! have. The decoder maps a number to the first refusal in the table with exactly this number.
//!
//! Sources: OF 1.0.1, 5.4.4; OF 1.1.0, A.4.4; OF 1.2, A.4.4; OF 1.3.5, 7.4.4; OF 1.4.1, 7.5.4;
//! OF 1.5.1, 7.5.4; `openvswitch/ofp-errors.h` of Open vSwitch 3.1.

mod exceptions;

use std::fmt;
use std::ops::RangeInclusive;

use flow::Refusal;

use crate::experimenter::{NICIRA, ONF};
use crate::version::Version;
use exceptions::EXCEPTIONS;

/// The numbers of an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Type and code of the specification.
    Plain {
        /// `ofp_error_msg.type`.
        kind: u16,
        /// `ofp_error_msg.code`.
        code: u16,
    },
    /// Nicira's type and code, in the `NXVC_VENDOR_ERROR` of OpenFlow 1.0 and 1.1.
    Nicira {
        /// `nx_vendor_error.type`.
        kind: u16,
        /// `nx_vendor_error.code`.
        code: u16,
    },
    /// An experimenter error (`OFPET_EXPERIMENTER`, 1.2 and later).
    Experimenter {
        /// The experimenter id.
        experimenter: u32,
        /// The experimenter's type.
        kind: u16,
    },
}

impl ErrorCode {
    /// The numbers of `refusal` in `version`.
    #[must_use]
    pub fn of(refusal: Refusal, version: Version) -> Self {
        ERROR_CODES[refusal as usize].entry(version).code
    }

    /// The refusal that has these numbers in `version`, if there is one.
    #[must_use]
    pub fn refusal(self, version: Version) -> Option<Refusal> {
        ERROR_CODES
            .iter()
            .find(|row| row.entry(version) == exact_entry(self))
            .map(|row| row.refusal)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { kind, code } => write!(f, "type {kind}, code {code}"),
            Self::Nicira { kind, code } => write!(f, "Nicira type {kind}, code {code}"),
            Self::Experimenter { experimenter, kind } => {
                write!(f, "experimenter {experimenter:#010x}, type {kind}")
            }
        }
    }
}

/// The numbers of a refusal in one version. `is_exact` is false if they are only the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodeEntry {
    code: ErrorCode,
    is_exact: bool,
}

struct ErrorCodeRow {
    refusal: Refusal,
    v10: CodeEntry,
    later: CodeEntry,
}

impl ErrorCodeRow {
    fn entry(&self, version: Version) -> CodeEntry {
        if version == Version::V10 {
            return self.v10;
        }
        let exception = EXCEPTIONS
            .iter()
            .find(|exception| exception.applies(self.refusal, version));
        exception.map_or(self.later, |exception| exception.entry)
    }
}

/// The entry of a range of versions after 1.0 that differs from the row's.
struct CodeException {
    refusal: Refusal,
    versions: RangeInclusive<Version>,
    entry: CodeEntry,
}

impl CodeException {
    fn applies(&self, refusal: Refusal, version: Version) -> bool {
        self.refusal == refusal && self.versions.contains(&version)
    }
}

const fn exact_entry(code: ErrorCode) -> CodeEntry {
    CodeEntry {
        code,
        is_exact: true,
    }
}

/// An entry with the version's own number.
const fn spec(kind: u16, code: u16) -> CodeEntry {
    exact_entry(ErrorCode::Plain { kind, code })
}

/// An entry with Nicira's number.
const fn nx(kind: u16, code: u16) -> CodeEntry {
    exact_entry(ErrorCode::Nicira { kind, code })
}

/// An entry with the nearest number, for a version without its own.
const fn near(kind: u16, code: u16) -> CodeEntry {
    let code = ErrorCode::Plain { kind, code };
    CodeEntry {
        code,
        is_exact: false,
    }
}

/// An entry with the nearest of Nicira's numbers.
const fn near_nx(kind: u16, code: u16) -> CodeEntry {
    let code = ErrorCode::Nicira { kind, code };
    CodeEntry {
        code,
        is_exact: false,
    }
}

/// An entry with an extension number of the Open Networking Foundation (`OFPET_EXPERIMENTER`).
const fn onf(kind: u16) -> CodeEntry {
    exact_entry(ErrorCode::Experimenter {
        experimenter: ONF,
        kind,
    })
}

/// An entry with Nicira's number in versions that have experimenter errors.
const fn nicira(kind: u16) -> CodeEntry {
    exact_entry(ErrorCode::Experimenter {
        experimenter: NICIRA,
        kind,
    })
}

const fn row(refusal: Refusal, v10: CodeEntry, later: CodeEntry) -> ErrorCodeRow {
    ErrorCodeRow {
        refusal,
        v10,
        later,
    }
}

const fn except(refusal: Refusal, from: Version, to: Version, entry: CodeEntry) -> CodeException {
    CodeException {
        refusal,
        versions: from..=to,
        entry,
    }
}

#[rustfmt::skip]
static ERROR_CODES: [ErrorCodeRow; Refusal::COUNT] = { use Refusal::*; [
    row(HelloIncompatible,              spec(0, 0),      spec(0, 0)),
    row(HelloPermission,                spec(0, 1),      spec(0, 1)),
    row(RequestBadVersion,              spec(1, 0),      spec(1, 0)),
    row(RequestBadType,                 spec(1, 1),      spec(1, 1)),
    row(RequestBadMultipart,            spec(1, 2),      spec(1, 2)),
    row(RequestBadExperimenter,         spec(1, 3),      spec(1, 3)),
    row(RequestBadExperimenterType,     spec(1, 4),      spec(1, 4)),
    row(RequestPermission,              spec(1, 5),      spec(1, 5)),
    row(RequestBadLength,               spec(1, 6),      spec(1, 6)),
    row(RequestBufferEmpty,             spec(1, 7),      spec(1, 7)),
    row(RequestBufferUnknown,           spec(1, 8),      spec(1, 8)),
    row(RequestBadTable,                nx(1, 512),      spec(1, 9)),
    row(RequestIsSlave,                 near(1, 5),      spec(1, 10)),
    row(RequestBadPort,                 nx(1, 514),      spec(1, 11)),
    row(RequestBadPacket,               near(1, 6),      spec(1, 12)),
    row(RequestMultipartOverflow,       near(1, 2),      spec(1, 13)),
    row(RequestMustBeZero,              nx(1, 515),      nicira(4)),

    row(ActionBadType,                  spec(2, 0),      spec(2, 0)),
    row(ActionBadLength,                spec(2, 1),      spec(2, 1)),
    row(ActionBadExperimenter,          spec(2, 2),      spec(2, 2)),
    row(ActionBadExperimenterType,      spec(2, 3),      spec(2, 3)),
    row(ActionBadOutPort,               spec(2, 4),      spec(2, 4)),
    row(ActionBadArgument,              spec(2, 5),      spec(2, 5)),
    row(ActionPermission,               spec(2, 6),      spec(2, 6)),
    row(ActionTooMany,                  spec(2, 7),      spec(2, 7)),
    row(ActionBadQueue,                 spec(2, 8),      spec(2, 8)),
    row(ActionBadOutGroup,              nx(2, 9),        spec(2, 9)),
    row(ActionMatchInconsistent,        nx(1, 522),      spec(2, 10)),
    row(ActionUnsupportedOrder,         near(3, 5),      spec(2, 11)),
    row(ActionBadTag,                   near(2, 5),      spec(2, 12)),
    row(ActionBadSetType,               nx(1, 523),      spec(2, 13)),
    row(ActionBadSetLength,             nx(1, 524),      spec(2, 14)),
    row(ActionBadSetArgument,           nx(1, 525),      spec(2, 15)),
    row(ActionBadHeaderType,            near(2, 5),      nicira(39)),
    row(ActionUnknownProperty,          near(2, 5),      nicira(40)),
    row(ActionBadProperty,              near(2, 5),      nicira(41)),
    row(ActionMustBeZero,               nx(2, 256),      nicira(11)),
    row(ActionBadConjunction,           nx(2, 526),      nicira(15)),

    row(InstructionUnknown,             near(3, 5),      spec(3, 0)),
    row(InstructionUnsupported,         nx(2, 257),      spec(3, 1)),
    row(InstructionBadTable,            near(2, 5),      spec(3, 2)),
    row(InstructionBadMetadata,         near(2, 5),      spec(3, 3)),
    row(InstructionBadMetadataMask,     near(2, 5),      spec(3, 4)),
    row(InstructionBadExperimenter,     near(2, 2),      spec(3, 5)),
    row(InstructionBadExperimenterType, near(2, 3),      spec(3, 6)),
    row(InstructionBadLength,           near(2, 1),      spec(3, 7)),
    row(InstructionPermission,          near(2, 6),      spec(3, 8)),
    row(InstructionDuplicate,           near(3, 5),      spec(3, 9)),

    row(MatchBadType,                   near_nx(1, 257), spec(4, 0)),
    row(MatchBadLength,                 near_nx(1, 256), spec(4, 1)),
    row(MatchBadTag,                    near_nx(1, 258), spec(4, 2)),
    row(MatchBadDlAddressMask,          near_nx(1, 259), spec(4, 3)),
    row(MatchBadNwAddressMask,          near_nx(1, 259), spec(4, 4)),
    row(MatchBadWildcards,              nx(1, 262),      spec(4, 5)),
    row(MatchBadField,                  nx(0, 263),      spec(4, 6)),
    row(MatchBadValue,                  nx(1, 258),      spec(4, 7)),
    row(MatchBadMask,                   nx(1, 259),      spec(4, 8)),
    row(MatchBadPrerequisite,           nx(1, 260),      spec(4, 9)),
    row(MatchDuplicateField,            nx(1, 261),      spec(4, 10)),
    row(MatchPermission,                near(1, 5),      spec(4, 11)),

    row(FlowModUnknown,                 near(3, 5),      spec(5, 0)),
    row(FlowModTableFull,               spec(3, 0),      spec(5, 1)),
    row(FlowModBadTable,                nx(5, 257),      spec(5, 2)),
    row(FlowModOverlap,                 spec(3, 1),      spec(5, 3)),
    row(FlowModPermission,              spec(3, 2),      spec(5, 4)),
    // 1.0 has this error for emergency rules only.
    row(FlowModBadTimeout,              spec(3, 3),      spec(5, 5)),
    row(FlowModBadCommand,              spec(3, 4),      spec(5, 6)),
    row(FlowModBadFlags,                nx(3, 258),      spec(5, 7)),
    row(FlowModUnsupported,             spec(3, 5),      near(5, 0)),

    // OpenFlow 1.0 has no groups: the error is an unknown message type.
    row(GroupModExists,                 near(1, 1),      spec(6, 0)),
    row(GroupModInvalidGroup,           near(1, 1),      spec(6, 1)),
    row(GroupModWeightUnsupported,      near(1, 1),      spec(6, 2)),
    row(GroupModOutOfGroups,            near(1, 1),      spec(6, 3)),
    row(GroupModOutOfBuckets,           near(1, 1),      spec(6, 4)),
    row(GroupModChainingUnsupported,    near(1, 1),      spec(6, 5)),
    row(GroupModWatchUnsupported,       near(1, 1),      spec(6, 6)),
    row(GroupModLoop,                   near(1, 1),      spec(6, 7)),
    row(GroupModUnknown,                near(1, 1),      spec(6, 8)),
    row(GroupModChained,                near(1, 1),      spec(6, 9)),
    row(GroupModBadType,                near(1, 1),      spec(6, 10)),
    row(GroupModBadCommand,             near(1, 1),      spec(6, 11)),
    row(GroupModBadBucket,              near(1, 1),      spec(6, 12)),
    row(GroupModBadWatch,               near(1, 1),      spec(6, 13)),
    row(GroupModPermission,             near(1, 1),      spec(6, 14)),

    row(PortModBadPort,                 spec(4, 0),      spec(7, 0)),
    row(PortModBadHwAddr,               spec(4, 1),      spec(7, 1)),
    row(PortModBadConfig,               near(1, 5),      spec(7, 2)),
    row(PortModBadAdvertise,            near(1, 5),      spec(7, 3)),
    row(PortModPermission,              near(1, 5),      spec(7, 4)),

    row(TableModBadTable,               near(1, 1),      spec(8, 0)),
    row(TableModBadConfig,              near(1, 1),      spec(8, 1)),
    row(TableModPermission,             near(1, 1),      spec(8, 2)),

    row(QueueBadPort,                   spec(5, 0),      spec(9, 0)),
    row(QueueBadQueue,                  spec(5, 1),      spec(9, 1)),
    row(QueuePermission,                spec(5, 2),      spec(9, 2)),

    row(ConfigBadFlags,                 near(1, 5),      spec(10, 0)),
    row(ConfigBadLength,                near(1, 5),      spec(10, 1)),
    row(ConfigPermission,               near(1, 5),      spec(10, 2)),

    row(RoleStale,                      near(1, 5),      spec(11, 0)),
    row(RoleUnsupported,                near(1, 5),      spec(11, 1)),
    row(RoleBad,                        nx(1, 513),      spec(11, 2)),
    row(RoleIdInUse,                    near(1, 5),      spec(11, 4)),

    // 1.0 has no meters either.
    row(MeterModUnknown,                near(1, 1),      spec(12, 0)),
    row(MeterModExists,                 near(1, 1),      spec(12, 1)),
    row(MeterModInvalidMeter,           near(1, 1),      spec(12, 2)),
    row(MeterModUnknownMeter,           near(1, 1),      spec(12, 3)),
    row(MeterModBadCommand,             near(1, 1),      spec(12, 4)),
    row(MeterModBadFlags,               near(1, 1),      spec(12, 5)),
    row(MeterModBadRate,                near(1, 1),      spec(12, 6)),
    row(MeterModBadBurst,               near(1, 1),      spec(12, 7)),
    row(MeterModBadBand,                near(1, 1),      spec(12, 8)),
    row(MeterModBadBandValue,           near(1, 1),      spec(12, 9)),
    row(MeterModOutOfMeters,            near(1, 1),      spec(12, 10)),
    row(MeterModOutOfBands,             near(1, 1),      spec(12, 11)),

    row(TableFeaturesPermission,        near(1, 2),      spec(13, 5)),
    row(TableFeaturesBadTable,          near(1, 2),      spec(13, 0)),

    row(PropertyBadType,                near(1, 5),      spec(14, 0)),
    row(PropertyBadLength,              near(1, 6),      spec(14, 1)),
    row(PropertyBadValue,               near(1, 5),      spec(14, 2)),
    row(PropertyDuplicate,              near(1, 5),      spec(14, 4)),
    row(PropertyBadExperimenter,        near(1, 3),      spec(14, 5)),
    row(PropertyBadExperimenterType,    near(1, 4),      spec(14, 6)),

    row(GroupModUnknownBucket,          near(1, 1),      spec(6, 15)),
    row(GroupModBucketExists,           near(1, 1),      spec(6, 16)),

    row(RequestPipelineFieldsOnly,      near(1, 5),      spec(1, 17)),

    row(AsyncInvalid,                   near(1, 5),      spec(15, 0)),
    row(AsyncUnsupported,               near(1, 5),      spec(15, 1)),

    row(BundleBadId,                    near(1, 4),      spec(17, 2)),
    row(BundleClosed,                   near(1, 4),      spec(17, 4)),
    row(BundleOutOfBundles,             near(1, 4),      spec(17, 5)),
    row(BundleBadType,                  near(1, 4),      spec(17, 6)),
    row(BundleBadFlags,                 near(1, 4),      spec(17, 7)),
    row(BundleMessageBadLength,         near(1, 4),      spec(17, 8)),
    row(BundleMessageBadXid,            near(1, 4),      spec(17, 9)),
    row(BundleMessageUnsupported,       near(1, 4),      spec(17, 10)),
    row(BundleMessageTooMany,           near(1, 4),      spec(17, 12)),
    row(BundleMessageFailed,            near(1, 4),      spec(17, 13)),
    row(BundleTimeout,                  near(1, 4),      spec(17, 14)),

    row(MonitorUnknown,                 near(1, 2),      spec(16, 0)),
    row(MonitorExists,                  nx(1, 517),      spec(16, 1)),
    row(MonitorUnknownMonitor,          nx(1, 519),      spec(16, 3)),
    row(MonitorBadCommand,              near(1, 2),      spec(16, 4)),
    row(MonitorBadFlags,                nx(1, 518),      spec(16, 5)),
    row(MonitorBadTable,                near_nx(1, 512), spec(16, 6)),
    row(MonitorBadOut,                  near_nx(1, 514), spec(16, 7)),

    row(TableFeaturesBadMetadata,       near(1, 2),      spec(13, 1)),
    row(TableFeaturesBadFeatures,       near(1, 2),      spec(13, 8)),
    row(TableFeaturesBadCapabilities,   near(1, 2),      spec(13, 6)),
    row(TableFeaturesBadSize,           near(1, 2),      spec(13, 7)),
    row(TableFeaturesBadCommand,        near(1, 2),      spec(13, 9)),
    row(TableFeaturesTooMany,           near(1, 2),      spec(13, 10)),

    row(BundleScheduleUnsupported,      near(1, 4),      spec(17, 16)),
    row(BundleScheduleFuture,           near(1, 4),      spec(17, 17)),
    row(BundleSchedulePast,             near(1, 4),      spec(17, 18)),
    row(ResumeStale,                    nx(1, 534),      nicira(35)),
    row(TlvBadCommand,                  nx(1, 527),      nicira(16)),
    row(TlvBadLength,                   nx(1, 528),      nicira(17)),
    row(TlvBadField,                    nx(1, 529),      nicira(18)),
    row(TlvTableFull,                   nx(1, 530),      nicira(19)),
    row(TlvAlreadyMapped,               nx(1, 531),      nicira(20)),
    row(TlvDuplicate,                   nx(1, 532),      nicira(21)),
    row(TlvInUse,                       nx(1, 537),      nicira(38)),
    row(TlvUnmapped,                    nx(1, 536),      nicira(37)),
    row(IpfixNotConfigured,             nx(1, 535),      nicira(36)),
]};

/// Every refusal.
#[cfg(test)]
pub(crate) fn refusals() -> impl Iterator<Item = Refusal> {
    ERROR_CODES.iter().map(|row| row.refusal)
}

#[cfg(test)]
mod tests;
