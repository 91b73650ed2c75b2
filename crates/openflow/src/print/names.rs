//! The names of the reasons that this crate gives, as Open vSwitch 3.1 has them
//! (`openflow/ofp-errors.h`). Those of numbers that are read are in `error_names`.

use ::flow::Refusal;

use crate::codec::Malformed;

/// Why a message cannot be printed, by the name that Open vSwitch gives the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

impl From<Malformed> for Unreadable {
    fn from(malformed: Malformed) -> Self {
        Self(refusal(malformed.fault))
    }
}

/// The name of a reason.
pub(crate) fn refusal(refusal: Refusal) -> &'static str {
    let found = NAMES.iter().find(|(known, _)| *known == refusal);
    found.map_or("OFPERR_UNKNOWN", |(_, name)| name)
}

#[rustfmt::skip]
const NAMES: &[(Refusal, &str)] = { use Refusal::*; &[
    (HelloIncompatible, "OFPHFC_INCOMPATIBLE"),
    (HelloPermission, "OFPHFC_EPERM"),
    (RequestBadVersion, "OFPBRC_BAD_VERSION"),
    (RequestBadType, "OFPBRC_BAD_TYPE"),
    (RequestBadMultipart, "OFPBRC_BAD_STAT"),
    (RequestBadExperimenter, "OFPBRC_BAD_VENDOR"),
    (RequestBadExperimenterType, "OFPBRC_BAD_SUBTYPE"),
    (RequestPermission, "OFPBRC_EPERM"),
    (RequestBadLength, "OFPBRC_BAD_LEN"),
    (RequestBufferEmpty, "OFPBRC_BUFFER_EMPTY"),
    (RequestBufferUnknown, "OFPBRC_BUFFER_UNKNOWN"),
    (RequestBadTable, "OFPBRC_BAD_TABLE_ID"),
    (RequestIsSlave, "OFPBRC_IS_SECONDARY"),
    (RequestBadPort, "OFPBRC_BAD_PORT"),
    (RequestBadPacket, "OFPBRC_BAD_PACKET"),
    (RequestMultipartOverflow, "OFPBRC_MULTIPART_BUFFER_OVERFLOW"),
    (ActionBadType, "OFPBAC_BAD_TYPE"),
    (ActionBadLength, "OFPBAC_BAD_LEN"),
    (ActionBadExperimenter, "OFPBAC_BAD_VENDOR"),
    (ActionBadExperimenterType, "OFPBAC_BAD_VENDOR_TYPE"),
    (ActionBadOutPort, "OFPBAC_BAD_OUT_PORT"),
    (ActionBadArgument, "OFPBAC_BAD_ARGUMENT"),
    (ActionPermission, "OFPBAC_EPERM"),
    (ActionTooMany, "OFPBAC_TOO_MANY"),
    (ActionBadQueue, "OFPBAC_BAD_QUEUE"),
    (ActionBadOutGroup, "OFPBAC_BAD_OUT_GROUP"),
    (ActionMatchInconsistent, "OFPBAC_MATCH_INCONSISTENT"),
    (ActionUnsupportedOrder, "OFPBAC_UNSUPPORTED_ORDER"),
    (ActionBadTag, "OFPBAC_BAD_TAG"),
    (ActionBadSetType, "OFPBAC_BAD_SET_TYPE"),
    (ActionBadSetLength, "OFPBAC_BAD_SET_LEN"),
    (ActionBadSetArgument, "OFPBAC_BAD_SET_ARGUMENT"),
    (ActionBadHeaderType, "NXBAC_BAD_HEADER_TYPE"),
    (ActionUnknownProperty, "NXBAC_UNKNOWN_ED_PROP"),
    (ActionBadProperty, "NXBAC_BAD_ED_PROP"),
    (InstructionUnknown, "OFPBIC_UNKNOWN_INST"),
    (InstructionUnsupported, "OFPBIC_UNSUP_INST"),
    (InstructionBadTable, "OFPBIC_BAD_TABLE_ID"),
    (InstructionBadMetadata, "OFPBIC_UNSUP_METADATA"),
    (InstructionBadMetadataMask, "OFPBIC_UNSUP_METADATA_MASK"),
    (InstructionBadExperimenter, "OFPBIC_BAD_EXPERIMENTER"),
    (InstructionBadExperimenterType, "OFPBIC_BAD_EXP_TYPE"),
    (InstructionBadLength, "OFPBIC_BAD_LEN"),
    (InstructionPermission, "OFPBIC_EPERM"),
    (InstructionDuplicate, "OFPBIC_DUP_INST"),
    (MatchBadType, "OFPBMC_BAD_TYPE"),
    (MatchBadLength, "OFPBMC_BAD_LEN"),
    (MatchBadTag, "OFPBMC_BAD_TAG"),
    (MatchBadDlAddressMask, "OFPBMC_BAD_DL_ADDR_MASK"),
    (MatchBadNwAddressMask, "OFPBMC_BAD_NW_ADDR_MASK"),
    (MatchBadWildcards, "OFPBMC_BAD_WILDCARDS"),
    (MatchBadField, "OFPBMC_BAD_FIELD"),
    (MatchBadValue, "OFPBMC_BAD_VALUE"),
    (MatchBadMask, "OFPBMC_BAD_MASK"),
    (MatchBadPrerequisite, "OFPBMC_BAD_PREREQ"),
    (MatchDuplicateField, "OFPBMC_DUP_FIELD"),
    (MatchPermission, "OFPBMC_EPERM"),
    (FlowModUnknown, "OFPFMFC_UNKNOWN"),
    (FlowModTableFull, "OFPFMFC_TABLE_FULL"),
    (FlowModBadTable, "OFPFMFC_BAD_TABLE_ID"),
    (FlowModOverlap, "OFPFMFC_OVERLAP"),
    (FlowModPermission, "OFPFMFC_EPERM"),
    (FlowModBadTimeout, "OFPFMFC_BAD_TIMEOUT"),
    (FlowModBadCommand, "OFPFMFC_BAD_COMMAND"),
    (FlowModBadFlags, "OFPFMFC_BAD_FLAGS"),
    (FlowModUnsupported, "OFPFMFC_UNSUPPORTED"),
    (GroupModExists, "OFPGMFC_GROUP_EXISTS"),
    (GroupModInvalidGroup, "OFPGMFC_INVALID_GROUP"),
    (GroupModWeightUnsupported, "OFPGMFC_WEIGHT_UNSUPPORTED"),
    (GroupModOutOfGroups, "OFPGMFC_OUT_OF_GROUPS"),
    (GroupModOutOfBuckets, "OFPGMFC_OUT_OF_BUCKETS"),
    (GroupModChainingUnsupported, "OFPGMFC_CHAINING_UNSUPPORTED"),
    (GroupModWatchUnsupported, "OFPGMFC_WATCH_UNSUPPORTED"),
    (GroupModLoop, "OFPGMFC_LOOP"),
    (GroupModUnknown, "OFPGMFC_UNKNOWN_GROUP"),
    (GroupModChained, "OFPGMFC_CHAINED_GROUP"),
    (GroupModBadType, "OFPGMFC_BAD_TYPE"),
    (GroupModBadCommand, "OFPGMFC_BAD_COMMAND"),
    (GroupModBadBucket, "OFPGMFC_BAD_BUCKET"),
    (GroupModBadWatch, "OFPGMFC_BAD_WATCH"),
    (GroupModPermission, "OFPGMFC_EPERM"),
    (PortModBadPort, "OFPPMFC_BAD_PORT"),
    (PortModBadHwAddr, "OFPPMFC_BAD_HW_ADDR"),
    (PortModBadConfig, "OFPPMFC_BAD_CONFIG"),
    (PortModBadAdvertise, "OFPPMFC_BAD_ADVERTISE"),
    (PortModPermission, "OFPPMFC_EPERM"),
    (TableModBadTable, "OFPTMFC_BAD_TABLE"),
    (TableModBadConfig, "OFPTMFC_BAD_CONFIG"),
    (TableModPermission, "OFPTMFC_EPERM"),
    (QueueBadPort, "OFPQOFC_BAD_PORT"),
    (QueueBadQueue, "OFPQOFC_BAD_QUEUE"),
    (QueuePermission, "OFPQOFC_EPERM"),
    (ConfigBadFlags, "OFPSCFC_BAD_FLAGS"),
    (ConfigBadLength, "OFPSCFC_BAD_LEN"),
    (ConfigPermission, "OFPSCFC_EPERM"),
    (RoleStale, "OFPRRFC_STALE"),
    (RoleUnsupported, "OFPRRFC_UNSUP"),
    (RoleBad, "OFPRRFC_BAD_ROLE"),
    (RoleIdInUse, "OFPRRFC_ID_IN_USE"),
    (MeterModUnknown, "OFPMMFC_UNKNOWN"),
    (MeterModExists, "OFPMMFC_METER_EXISTS"),
    (MeterModInvalidMeter, "OFPMMFC_INVALID_METER"),
    (MeterModUnknownMeter, "OFPMMFC_UNKNOWN_METER"),
    (MeterModBadCommand, "OFPMMFC_BAD_COMMAND"),
    (MeterModBadFlags, "OFPMMFC_BAD_FLAGS"),
    (MeterModBadRate, "OFPMMFC_BAD_RATE"),
    (MeterModBadBurst, "OFPMMFC_BAD_BURST"),
    (MeterModBadBand, "OFPMMFC_BAD_BAND"),
    (MeterModBadBandValue, "OFPMMFC_BAD_BAND_VALUE"),
    (MeterModOutOfMeters, "OFPMMFC_OUT_OF_METERS"),
    (MeterModOutOfBands, "OFPMMFC_OUT_OF_BANDS"),
    (TableFeaturesPermission, "OFPTFFC_EPERM"),
    (TableFeaturesBadTable, "OFPTFFC_BAD_TABLE"),
    (PropertyBadType, "OFPBPC_BAD_TYPE"),
    (PropertyBadLength, "OFPBPC_BAD_LEN"),
    (PropertyBadValue, "OFPBPC_BAD_VALUE"),
    (PropertyDuplicate, "OFPBPC_DUP_TYPE"),
    (PropertyBadExperimenter, "OFPBPC_BAD_EXPERIMENTER"),
    (PropertyBadExperimenterType, "OFPBPC_BAD_EXP_TYPE"),
    (GroupModUnknownBucket, "OFPGMFC_UNKNOWN_BUCKET"),
    (GroupModBucketExists, "OFPGMFC_BUCKET_EXISTS"),
    (RequestPipelineFieldsOnly, "OFPBRC_PIPELINE_FIELDS_ONLY"),
    (AsyncInvalid, "OFPACFC_INVALID"),
    (AsyncUnsupported, "OFPACFC_UNSUPPORTED"),
    (BundleBadId, "OFPBFC_BAD_ID"),
    (BundleClosed, "OFPBFC_BUNDLE_CLOSED"),
    (BundleOutOfBundles, "OFPBFC_OUT_OF_BUNDLES"),
    (BundleBadType, "OFPBFC_BAD_TYPE"),
    (BundleBadFlags, "OFPBFC_BAD_FLAGS"),
    (BundleMessageBadLength, "OFPBFC_MSG_BAD_LEN"),
    (BundleMessageBadXid, "OFPBFC_MSG_BAD_XID"),
    (BundleMessageUnsupported, "OFPBFC_MSG_UNSUP"),
    (BundleMessageTooMany, "OFPBFC_MSG_TOO_MANY"),
    (BundleMessageFailed, "OFPBFC_MSG_FAILED"),
    (MonitorUnknown, "OFPMOFC_UNKNOWN"),
    (MonitorExists, "OFPMOFC_MONITOR_EXISTS"),
    (MonitorUnknownMonitor, "OFPMOFC_UNKNOWN_MONITOR"),
    (MonitorBadCommand, "OFPMOFC_BAD_COMMAND"),
    (MonitorBadFlags, "OFPMOFC_BAD_FLAGS"),
    (MonitorBadTable, "OFPMOFC_BAD_TABLE_ID"),
    (MonitorBadOut, "OFPMOFC_BAD_OUT"),
    (TableFeaturesBadMetadata, "OFPTFFC_BAD_METADATA"),
    (TableFeaturesBadFeatures, "OFPTFFC_BAD_FEATURES"),
    (TableFeaturesBadCapabilities, "OFPTFFC_BAD_CAPA"),
    (TableFeaturesBadSize, "OFPTFFC_BAD_MAX_ENT"),
    (TableFeaturesBadCommand, "OFPTFFC_BAD_COMMAND"),
    (TableFeaturesTooMany, "OFPTFFC_TOO_MANY"),
    (BundleScheduleUnsupported, "OFPBFC_SCHED_NOT_SUPPORTED"),
    (BundleScheduleFuture, "OFPBFC_SCHED_FUTURE"),
    (BundleSchedulePast, "OFPBFC_SCHED_PAST"),
    (ResumeStale, "NXR_STALE"),
    (TlvBadCommand, "NXTTMFC_BAD_COMMAND"),
    (TlvBadLength, "NXTTMFC_BAD_OPT_LEN"),
    (TlvBadField, "NXTTMFC_BAD_FIELD_IDX"),
    (TlvTableFull, "NXTTMFC_TABLE_FULL"),
    (TlvAlreadyMapped, "NXTTMFC_ALREADY_MAPPED"),
    (TlvDuplicate, "NXTTMFC_DUP_ENTRY"),
    (TlvInUse, "NXTTMFC_INVALID_TLV_DEL"),
    (TlvUnmapped, "NXFMFC_INVALID_TLV_FIELD"),
    (IpfixNotConfigured, "NXST_NOT_CONFIGURED"),
]};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;

    #[test]
    fn every_reason_has_a_name() {
        for known in faults::refusals() {
            assert_ne!(refusal(known), "OFPERR_UNKNOWN", "{known:?}");
        }
    }
}
