//! Refusals: reasons why the switch declines a request. The codec of each version assigns the error
//! type and code.

/// Defines the enumeration: for each reason its name, its description and its text.
macro_rules! refusals {
    ($($(#[$what:meta])+ $name:ident => $text:literal,)+) => {
        /// Reason of an error message, grouped like the specification's error types (OF 1.3.5,
        /// 7.4.4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        pub enum Refusal {
            $($(#[$what])+ #[error($text)] $name,)+
        }
    };
}

refusals! {
    /// No version in common.
    HelloIncompatible => "no protocol version in common",
    /// The peer is not permitted to connect.
    HelloPermission => "connection not permitted",

    /// The header's version is not the negotiated one.
    RequestBadVersion => "the message's version is not the negotiated one",
    /// The message type is unknown, or the switch does not receive it.
    RequestBadType => "unknown message type",
    /// The kind of statistics is unknown or not implemented.
    RequestBadMultipart => "unknown kind of statistics or multipart message",
    /// The experimenter is unknown.
    RequestBadExperimenter => "unknown experimenter",
    /// The experimenter's message type is unknown.
    RequestBadExperimenterType => "unknown type of experimenter message",
    /// The sender may not do this.
    RequestPermission => "permission denied",
    /// A length does not fit its contents.
    RequestBadLength => "wrong length",
    /// The buffer was used before.
    RequestBufferEmpty => "buffer already used",
    /// The buffer does not exist.
    RequestBufferUnknown => "no such buffer",
    /// The table does not exist.
    RequestBadTable => "no such table",
    /// A slave may not change anything.
    RequestIsSlave => "denied: the controller is a slave",
    /// The port does not exist.
    RequestBadPort => "no such port",
    /// The frame in a packet-out is invalid.
    RequestBadPacket => "invalid frame in a packet-out",
    /// A sequence of multipart requests exceeds the buffer.
    RequestMultipartOverflow => "multipart request too long",

    /// Reserved bits of a message are not zero (Nicira's).
    RequestMustBeZero => "reserved bits must be zero",

    /// Unknown action type.
    ActionBadType => "unknown action",
    /// An action's length is wrong.
    ActionBadLength => "wrong action length",
    /// Unknown experimenter of an action.
    ActionBadExperimenter => "unknown experimenter of an action",
    /// Unknown action of an experimenter.
    ActionBadExperimenterType => "unknown action of an experimenter",
    /// The output port is invalid.
    ActionBadOutPort => "no such output port",
    /// An argument is out of range.
    ActionBadArgument => "bad argument of an action",
    /// The sender may not use this action.
    ActionPermission => "action not permitted",
    /// More actions than the switch supports.
    ActionTooMany => "too many actions",
    /// The queue does not exist.
    ActionBadQueue => "no such queue",
    /// The group does not exist.
    ActionBadOutGroup => "no such group",
    /// The match does not imply the action's prerequisites.
    ActionMatchInconsistent => "action inconsistent with the match",
    /// The action set does not support the order of the actions.
    ActionUnsupportedOrder => "unsupported order of actions",
    /// The EtherType cannot be pushed or popped.
    ActionBadTag => "bad tag type",
    /// Set-field names an unknown or read-only field.
    ActionBadSetType => "set-field of an unknown or read-only field",
    /// Set-field's length does not fit the field.
    ActionBadSetLength => "wrong length of a set-field",
    /// Set-field's value does not fit the field.
    ActionBadSetArgument => "bad value of a set-field",
    /// The encapsulation header is unknown (Open vSwitch's extension).
    ActionBadHeaderType => "unknown encapsulation header",
    /// The encapsulation header has no such property (Open vSwitch's extension).
    ActionUnknownProperty => "unknown property of an encapsulation header",
    /// The property's value is invalid (Open vSwitch's extension).
    ActionBadProperty => "bad property of an encapsulation header",
    /// Reserved bits of an action are not zero (Nicira's).
    ActionMustBeZero => "reserved bits of the action must be zero",
    /// A conjunction has too few or too many clauses, or no clause with this number (Nicira's).
    ActionBadConjunction => "bad clause or number of clauses of a conjunction",

    /// Unknown instruction.
    InstructionUnknown => "unknown instruction",
    /// The switch or table does not support the instruction.
    InstructionUnsupported => "unsupported instruction",
    /// The table of goto-table does not exist or is not a later one.
    InstructionBadTable => "bad table of goto-table",
    /// Metadata bits that the switch does not have.
    InstructionBadMetadata => "unsupported metadata",
    /// Metadata mask bits that the switch does not have.
    InstructionBadMetadataMask => "unsupported metadata mask",
    /// Unknown experimenter of an instruction.
    InstructionBadExperimenter => "unknown experimenter of an instruction",
    /// Unknown instruction of an experimenter.
    InstructionBadExperimenterType => "unknown instruction of an experimenter",
    /// An instruction's length is wrong.
    InstructionBadLength => "wrong instruction length",
    /// The sender may not use this instruction.
    InstructionPermission => "instruction not permitted",
    /// The same instruction twice.
    InstructionDuplicate => "duplicate instruction",

    /// Unknown type of match.
    MatchBadType => "unknown type of match",
    /// A match's length is wrong.
    MatchBadLength => "wrong match length",
    /// A tag that cannot be matched.
    MatchBadTag => "bad tag in a match",
    /// A data-link address mask that cannot be matched.
    MatchBadDlAddressMask => "bad data-link address mask",
    /// A network address mask that cannot be matched.
    MatchBadNwAddressMask => "bad network address mask",
    /// Unsupported wildcards, or bits under a wildcard.
    MatchBadWildcards => "bad wildcards",
    /// Unknown match field.
    MatchBadField => "unknown match field",
    /// A value that the field cannot have.
    MatchBadValue => "bad value of a match field",
    /// The field does not permit the mask.
    MatchBadMask => "bad mask of a match field",
    /// The field's prerequisites are not in the match.
    MatchBadPrerequisite => "prerequisites of a match field are missing",
    /// The same field twice.
    MatchDuplicateField => "duplicate match field",
    /// The sender may not match on this.
    MatchPermission => "match not permitted",

    /// A flow-mod failed for another reason.
    FlowModUnknown => "flow modification failed",
    /// The table is full.
    FlowModTableFull => "the flow table is full",
    /// The flow-mod's table does not exist.
    FlowModBadTable => "no such flow table",
    /// A rule of the same priority overlaps and the flow-mod forbids it.
    FlowModOverlap => "an overlapping rule of the same priority exists",
    /// The sender may not change flows.
    FlowModPermission => "flow modification not permitted",
    /// Unsupported timeout.
    FlowModBadTimeout => "unsupported timeout",
    /// Unknown flow-mod command.
    FlowModBadCommand => "unknown flow modification command",
    /// Unknown flow-mod flags.
    FlowModBadFlags => "unsupported flow modification flags",
    /// The table does not support the order of the action list (OpenFlow 1.0).
    FlowModUnsupported => "unsupported action list",

    /// A group with this number exists.
    GroupModExists => "the group exists",
    /// Invalid group number, or buckets that the group's kind does not permit.
    GroupModInvalidGroup => "invalid group",
    /// Buckets of unequal weight.
    GroupModWeightUnsupported => "unequal weights are not supported",
    /// Too many groups.
    GroupModOutOfGroups => "too many groups",
    /// Too many buckets.
    GroupModOutOfBuckets => "too many buckets",
    /// Groups cannot be chained, or not as deep.
    GroupModChainingUnsupported => "too many chained groups",
    /// A group of this kind cannot watch a port or group.
    GroupModWatchUnsupported => "a group of this kind cannot watch a port or group",
    /// The group would send to itself or watch itself.
    GroupModLoop => "loop of groups",
    /// The group to change does not exist.
    GroupModUnknown => "no such group",
    /// Another group sends to the group to delete.
    GroupModChained => "another group refers to this one",
    /// Unknown kind of group.
    GroupModBadType => "unknown kind of group",
    /// Unknown command of a group-mod.
    GroupModBadCommand => "unknown group modification command",
    /// A bucket is not well formed.
    GroupModBadBucket => "bad bucket",
    /// Invalid port or group to watch.
    GroupModBadWatch => "bad port or group to watch",
    /// The sender may not change groups.
    GroupModPermission => "group modification not permitted",

    /// The port to change does not exist.
    PortModBadPort => "no such port",
    /// The hardware address differs from the port's.
    PortModBadHwAddr => "wrong hardware address of the port",
    /// Configuration bits that the port does not have.
    PortModBadConfig => "unsupported port configuration",
    /// Features that the port cannot advertise.
    PortModBadAdvertise => "unsupported advertised features",
    /// The sender may not change ports.
    PortModPermission => "port modification not permitted",
    /// The table to change does not exist.
    TableModBadTable => "no such table",
    /// Unsupported table configuration.
    TableModBadConfig => "unsupported table configuration",
    /// The sender may not change tables.
    TableModPermission => "table modification not permitted",
    /// The port does not exist.
    QueueBadPort => "no such port",
    /// The queue does not exist.
    QueueBadQueue => "no such queue",
    /// The sender may not query queues.
    QueuePermission => "queue operation not permitted",
    /// Unsupported switch configuration flags.
    ConfigBadFlags => "unsupported switch configuration flags",
    /// Unsupported switch configuration value.
    ConfigBadLength => "unsupported switch configuration value",
    /// The sender may not change the configuration.
    ConfigPermission => "switch configuration not permitted",
    /// The generation id is older than the last.
    RoleStale => "stale generation id",
    /// Roles are not supported.
    RoleUnsupported => "roles are not supported",
    /// Unknown role.
    RoleBad => "unknown role",
    /// Another controller has this short id (1.5).
    RoleIdInUse => "short id in use",

    /// A meter-mod failed for another reason.
    MeterModUnknown => "meter modification failed",
    /// A meter with this number exists.
    MeterModExists => "the meter exists",
    /// Invalid meter number, or one that a rule may not name.
    MeterModInvalidMeter => "invalid meter",
    /// The meter to change or describe does not exist.
    MeterModUnknownMeter => "no such meter",
    /// Unknown meter-mod command.
    MeterModBadCommand => "unknown meter modification command",
    /// Unknown meter flags, or flags that contradict each other.
    MeterModBadFlags => "unsupported meter flags",
    /// Unsupported rate of a band.
    MeterModBadRate => "bad rate of a meter band",
    /// Unsupported burst of a band.
    MeterModBadBurst => "bad burst of a meter band",
    /// Unknown kind of band, or one that the meter does not support.
    MeterModBadBand => "unsupported kind of meter band",
    /// Invalid value of a band.
    MeterModBadBandValue => "bad value of a meter band",
    /// Too many meters.
    MeterModOutOfMeters => "too many meters",
    /// Too many bands.
    MeterModOutOfBands => "too many meter bands",
    /// Table features cannot be set.
    TableFeaturesPermission => "table features cannot be changed",
    /// A table in the table features does not exist.
    TableFeaturesBadTable => "table features for a table that does not exist",
    /// Unknown kind of property (1.4).
    PropertyBadType => "unknown property",
    /// A property's length is wrong.
    PropertyBadLength => "wrong length of a property",
    /// Unsupported value of a property.
    PropertyBadValue => "bad value of a property",
    /// The same property twice.
    PropertyDuplicate => "duplicate property",
    /// Unknown experimenter of a property.
    PropertyBadExperimenter => "unknown experimenter of a property",
    /// Unknown property of an experimenter.
    PropertyBadExperimenterType => "unknown property of an experimenter",
    /// The bucket to insert after or to remove does not exist (1.5).
    GroupModUnknownBucket => "no such bucket",
    /// A bucket with this number exists (1.5).
    GroupModBucketExists => "the bucket exists",
    /// A header field is given as a pipeline field (1.5).
    RequestPipelineFieldsOnly => "header field among the pipeline fields",
    /// A mask of asynchronous messages has undefined bits (1.4).
    AsyncInvalid => "bad mask of asynchronous messages",
    /// The switch does not have this asynchronous message (1.4).
    AsyncUnsupported => "unsupported configuration of asynchronous messages",
    /// The bundle does not exist, or exists already.
    BundleBadId => "the bundle does not exist, or exists already",
    /// The bundle accepts no more messages.
    BundleClosed => "the bundle is closed",
    /// The connection has the largest number of bundles.
    BundleOutOfBundles => "too many bundles",
    /// Unknown bundle control type, or one of the other direction.
    BundleBadType => "unknown bundle control type",
    /// Unknown bundle flags, or flags that differ from those at its opening.
    BundleBadFlags => "bad flags of a bundle",
    /// The length of a message in a bundle is wrong.
    BundleMessageBadLength => "wrong length of a message in a bundle",
    /// The transaction id of a message in a bundle differs from that of the bundle message.
    BundleMessageBadXid => "wrong transaction id of a message in a bundle",
    /// The message is not permitted in a bundle.
    BundleMessageUnsupported => "message not supported in a bundle",
    /// The bundles contain too many messages.
    BundleMessageTooMany => "too many messages in bundles",
    /// A message of the bundle failed, and none took effect.
    BundleMessageFailed => "a message of the bundle failed",
    /// The bundle received no message for too long, and was discarded.
    BundleTimeout => "the bundle was idle for too long",

    /// A monitor request failed for another reason, such as lack of memory.
    MonitorUnknown => "cannot create the flow monitor",
    /// A monitor with this number exists.
    MonitorExists => "the flow monitor exists",
    /// The monitor to change or remove does not exist.
    MonitorUnknownMonitor => "no such flow monitor",
    /// Unknown command for a monitor.
    MonitorBadCommand => "unknown flow monitor command",
    /// Unsupported flags of a monitor.
    MonitorBadFlags => "bad flags of a flow monitor",
    /// The monitor's table does not exist.
    MonitorBadTable => "no such table to monitor",
    /// Invalid output port or group of a monitor.
    MonitorBadOut => "no such output to monitor",
    /// Unsupported metadata bits of a table.
    TableFeaturesBadMetadata => "unsupported metadata of a table",
    /// Unsupported features of a table.
    TableFeaturesBadFeatures => "unsupported features of a table",
    /// Unsupported capabilities of a table.
    TableFeaturesBadCapabilities => "unsupported capabilities of a table",
    /// Unsupported size of a table.
    TableFeaturesBadSize => "unsupported size of a table",
    /// Unsupported command for table features.
    TableFeaturesBadCommand => "unsupported command for table features",
    /// Too many tables.
    TableFeaturesTooMany => "too many tables",
    /// A bundle lacks its scheduled time, or has one without the flag (1.5).
    BundleScheduleUnsupported => "scheduled time of the bundle not supported",
    /// The scheduled time of a bundle is too far in the future (1.5).
    BundleScheduleFuture => "scheduled time of the bundle too far in the future",
    /// The scheduled time of a bundle is too far in the past (1.5).
    BundleSchedulePast => "scheduled time of the bundle too far in the past",
    /// The continuation was not created by this switch, or no longer fits its configuration.
    ResumeStale => "continuation of another switch or configuration",
    /// Unknown command for the TLV map.
    TlvBadCommand => "unknown command for the TLV map",
    /// Bad length of a tunnel option.
    TlvBadLength => "bad length of a tunnel option",
    /// The tunnel metadata field does not exist.
    TlvBadField => "no such tunnel metadata field",
    /// No space for the values of all tunnel options.
    TlvTableFull => "no space for the values of the tunnel options",
    /// The field is mapped to a tunnel option.
    TlvAlreadyMapped => "the field is mapped to a tunnel option",
    /// The tunnel option is mapped to a field.
    TlvDuplicate => "the tunnel option is mapped to a field",
    /// A rule uses the field whose mapping is to be removed.
    TlvInUse => "a rule uses the field of the tunnel option",
    /// The field is not mapped to a tunnel option.
    TlvUnmapped => "the field is not mapped to a tunnel option",
    /// No IPFIX exporter is configured.
    IpfixNotConfigured => "IPFIX is not configured",
}

impl Refusal {
    /// Number of reasons.
    pub const COUNT: usize = Self::IpfixNotConfigured as usize + 1;
}
