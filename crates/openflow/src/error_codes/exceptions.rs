//! The versions after 1.0 that have another number for a refusal than the later versions, or none.

use flow::Refusal;

use super::{CodeException, except, near, near_nx, nicira, nx, onf, spec};
use crate::version::Version;

#[rustfmt::skip]
pub(super) static EXCEPTIONS: &[CodeException] = { use {Refusal::*, Version::*}; &[
    //     refusal                        from to   number
    except(RequestIsSlave,                 V11, V11, near(1, 5)),
    except(RequestBadPort,                 V11, V11, nx(1, 514)),
    except(RequestBadPacket,               V11, V11, near(1, 6)),
    except(RequestMultipartOverflow,       V11, V12, near(1, 2)),
    except(RequestPipelineFieldsOnly,      V11, V14, near(1, 5)),
    except(RequestMustBeZero,              V11, V11, nx(1, 515)),
    except(ActionMustBeZero,               V11, V11, nx(2, 256)),
    except(ActionBadConjunction,           V11, V11, nx(2, 526)),

    except(ActionBadSetType,               V11, V11, nx(1, 523)),
    except(ActionBadSetLength,             V11, V11, nx(1, 524)),
    except(ActionBadSetArgument,           V11, V11, nx(1, 525)),

    except(InstructionBadExperimenterType, V11, V11, near(3, 5)),
    except(InstructionBadLength,           V11, V11, near(1, 6)),
    except(InstructionPermission,          V11, V11, near(1, 5)),
    except(InstructionDuplicate,           V11, V11, nx(3, 256)),
    except(InstructionDuplicate,           V12, V13, onf(2600)),

    except(MatchBadMask,                   V11, V11, nx(1, 259)),
    except(MatchBadPrerequisite,           V11, V11, nx(1, 260)),
    except(MatchDuplicateField,            V11, V11, nx(1, 261)),
    except(MatchPermission,                V11, V11, near(1, 5)),

    except(FlowModBadFlags,                V11, V11, nx(5, 258)),

    // Until 1.2 an unknown type of group or bucket is an invalid group.
    except(GroupModBadType,                V11, V11, near(6, 1)),
    except(GroupModBadCommand,             V11, V11, near(1, 1)),
    except(GroupModBadBucket,              V11, V11, near(6, 1)),
    except(GroupModChained,                V11, V11, near(6, 1)),
    except(GroupModBadWatch,               V11, V11, near(6, 6)),
    except(GroupModPermission,             V11, V11, near(1, 5)),

    // Before 1.5 buckets have no ids.
    except(GroupModUnknownBucket,          V11, V11, near(6, 1)),
    except(GroupModUnknownBucket,          V12, V14, near(6, 12)),
    except(GroupModBucketExists,           V11, V11, near(6, 1)),
    except(GroupModBucketExists,           V12, V14, near(6, 12)),

    except(PortModPermission,              V11, V11, near(1, 5)),
    except(TableModPermission,             V11, V11, near(1, 5)),
    except(ConfigPermission,               V11, V11, near(1, 5)),

    except(RoleStale,                      V11, V11, near(1, 5)),
    except(RoleUnsupported,                V11, V11, near(1, 5)),
    except(RoleBad,                        V11, V11, nx(1, 513)),
    except(RoleIdInUse,                    V11, V11, near(1, 5)),
    except(RoleIdInUse,                    V12, V14, near(11, 1)),

    // Before 1.3 there are neither meters nor table features.
    except(MeterModUnknown,                V11, V12, near(1, 1)),
    except(MeterModUnknownMeter,           V11, V12, near(1, 1)),
    except(MeterModInvalidMeter,           V11, V12, near(1, 1)),
    except(MeterModBadCommand,             V11, V12, near(1, 1)),
    except(MeterModBadFlags,               V11, V12, near(1, 1)),
    except(MeterModBadBand,                V11, V12, near(1, 1)),
    except(MeterModOutOfMeters,            V11, V12, near(1, 1)),
    except(MeterModExists,                 V11, V12, near(1, 1)),
    except(MeterModBadRate,                V11, V12, near(1, 1)),
    except(MeterModBadBurst,               V11, V12, near(1, 1)),
    except(MeterModBadBandValue,           V11, V12, near(1, 1)),
    except(MeterModOutOfBands,             V11, V12, near(1, 1)),
    except(TableFeaturesPermission,        V11, V12, near(1, 2)),
    except(TableFeaturesBadTable,          V11, V12, near(1, 2)),

    except(TableFeaturesBadMetadata,       V11, V12, near(1, 2)),
    except(TableFeaturesBadFeatures,       V11, V12, near(1, 2)),
    except(TableFeaturesBadFeatures,       V13, V13, near(13, 4)),
    except(TableFeaturesBadFeatures,       V14, V14, near(13, 5)),
    except(TableFeaturesBadCapabilities,   V11, V12, near(1, 2)),
    except(TableFeaturesBadCapabilities,   V13, V14, near(13, 5)),
    except(TableFeaturesBadSize,           V11, V12, near(1, 2)),
    except(TableFeaturesBadSize,           V13, V14, near(13, 5)),
    except(TableFeaturesBadCommand,        V11, V12, near(1, 2)),
    except(TableFeaturesBadCommand,        V13, V14, near(13, 5)),
    except(TableFeaturesTooMany,           V11, V12, near(1, 2)),
    except(TableFeaturesTooMany,           V13, V14, near(13, 5)),

    // In 1.3 only table features have properties.
    except(PropertyBadType,                V11, V12, near(1, 5)),
    except(PropertyBadType,                V13, V13, spec(13, 2)),
    except(PropertyBadLength,              V11, V12, near(1, 6)),
    except(PropertyBadLength,              V13, V13, spec(13, 3)),
    except(PropertyBadValue,               V11, V12, near(1, 5)),
    except(PropertyBadValue,               V13, V13, spec(13, 4)),
    except(PropertyDuplicate,              V11, V12, near(1, 5)),
    except(PropertyDuplicate,              V13, V13, onf(4444)),
    except(PropertyBadExperimenter,        V11, V12, near(1, 3)),
    except(PropertyBadExperimenter,        V13, V13, onf(4445)),
    except(PropertyBadExperimenterType,    V11, V12, near(1, 4)),
    except(PropertyBadExperimenterType,    V13, V13, onf(4446)),

    except(AsyncInvalid,                   V11, V13, near(1, 5)),
    except(AsyncUnsupported,               V11, V13, near(1, 5)),

    // In 1.3 bundles are ONF's extension 230, with its numbers.
    except(BundleBadId,                    V11, V12, near(1, 4)),
    except(BundleBadId,                    V13, V13, onf(2302)),
    except(BundleClosed,                   V11, V12, near(1, 4)),
    except(BundleClosed,                   V13, V13, onf(2304)),
    except(BundleOutOfBundles,             V11, V12, near(1, 4)),
    except(BundleOutOfBundles,             V13, V13, onf(2305)),
    except(BundleBadType,                  V11, V12, near(1, 4)),
    except(BundleBadType,                  V13, V13, onf(2306)),
    except(BundleBadFlags,                 V11, V12, near(1, 4)),
    except(BundleBadFlags,                 V13, V13, onf(2307)),
    except(BundleMessageBadLength,         V11, V12, near(1, 4)),
    except(BundleMessageBadLength,         V13, V13, onf(2308)),
    except(BundleMessageBadXid,            V11, V12, near(1, 4)),
    except(BundleMessageBadXid,            V13, V13, onf(2309)),
    except(BundleMessageUnsupported,       V11, V12, near(1, 4)),
    except(BundleMessageUnsupported,       V13, V13, onf(2310)),
    except(BundleMessageTooMany,           V11, V12, near(1, 4)),
    except(BundleMessageTooMany,           V13, V13, onf(2312)),
    except(BundleMessageFailed,            V11, V12, near(1, 4)),
    except(BundleMessageFailed,            V13, V13, onf(2313)),
    except(BundleTimeout,                  V11, V12, near(1, 4)),
    except(BundleTimeout,                  V13, V13, onf(2314)),

    except(BundleScheduleUnsupported,      V11, V12, near(1, 4)),
    except(BundleScheduleUnsupported,      V13, V13, near(1, 4)),
    except(BundleScheduleUnsupported,      V14, V14, near(17, 7)),
    except(BundleScheduleFuture,           V11, V13, near(1, 4)),
    except(BundleScheduleFuture,           V14, V14, near(17, 7)),
    except(BundleSchedulePast,             V11, V13, near(1, 4)),
    except(BundleSchedulePast,             V14, V14, near(17, 7)),

    // Before 1.4 flow monitors are Nicira's; in 1.3 they are ONF's with Nicira's numbers.
    except(MonitorUnknown,                 V11, V13, near(1, 2)),
    except(ActionBadHeaderType,            V11, V12, near(2, 5)),
    except(ActionUnknownProperty,          V11, V12, near(2, 5)),
    except(ActionBadProperty,              V11, V12, near(2, 5)),
    except(MonitorExists,                  V11, V11, nx(1, 517)),
    except(MonitorExists,                  V12, V13, nicira(6)),
    except(MonitorUnknownMonitor,          V11, V11, nx(1, 519)),
    except(MonitorUnknownMonitor,          V12, V13, nicira(8)),
    except(MonitorBadCommand,              V11, V13, near(1, 2)),
    except(MonitorBadFlags,                V11, V11, nx(1, 518)),
    except(MonitorBadFlags,                V12, V13, nicira(7)),
    except(MonitorBadTable,                V11, V13, near(1, 9)),
    except(MonitorBadOut,                  V11, V11, near_nx(1, 514)),
    except(MonitorBadOut,                  V12, V13, near(1, 11)),
    except(ResumeStale,                    V11, V11, nx(1, 534)),
    except(TlvBadCommand,                  V11, V11, nx(1, 527)),
    except(TlvBadLength,                   V11, V11, nx(1, 528)),
    except(TlvBadField,                    V11, V11, nx(1, 529)),
    except(TlvTableFull,                   V11, V11, nx(1, 530)),
    except(TlvAlreadyMapped,               V11, V11, nx(1, 531)),
    except(TlvDuplicate,                   V11, V11, nx(1, 532)),
    except(TlvInUse,                       V11, V11, nx(1, 537)),
    except(TlvUnmapped,                    V11, V11, nx(1, 536)),
    except(IpfixNotConfigured,             V11, V11, nx(1, 535)),
]};
