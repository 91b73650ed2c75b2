//! Why the switch declines. One name for one reason; its number in a version is the codec's.

/// A reason for an error message, in the specification's own divisions (OF 1.3.5, 7.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refusal {
    /// No version in common.
    #[error("no protocol version in common")]
    HelloIncompatible,
    /// This peer may not connect.
    #[error("this peer may not connect")]
    HelloPermission,

    /// The header's version is not the negotiated one.
    #[error("the message's version is not the negotiated one")]
    RequestBadVersion,
    /// The message type is unknown, or not one a switch receives.
    #[error("unknown message type")]
    RequestBadType,
    /// The kind of statistics is unknown or not implemented.
    #[error("unknown kind of statistics or multipart message")]
    RequestBadMultipart,
    /// The experimenter is unknown.
    #[error("unknown experimenter")]
    RequestBadExperimenter,
    /// The experimenter's message type is unknown.
    #[error("unknown type of experimenter message")]
    RequestBadExperimenterType,
    /// The sender may not do this.
    #[error("permission denied")]
    RequestPermission,
    /// A length does not fit its contents.
    #[error("wrong length")]
    RequestBadLength,
    /// The buffer was used before.
    #[error("the buffer is empty")]
    RequestBufferEmpty,
    /// There is no such buffer.
    #[error("no such buffer")]
    RequestBufferUnknown,
    /// There is no such table.
    #[error("no such table")]
    RequestBadTable,
    /// A slave may not change anything.
    #[error("denied: the controller is a slave")]
    RequestIsSlave,
    /// There is no such port.
    #[error("no such port")]
    RequestBadPort,
    /// The frame in a packet-out cannot be used.
    #[error("unusable frame")]
    RequestBadPacket,
    /// A sequence of multipart requests outgrew the switch.
    #[error("multipart request too long")]
    RequestMultipartOverflow,

    /// Something that has to be zero is not (Nicira's).
    #[error("what has to be zero is not")]
    RequestMustBeZero,

    /// Unknown action type.
    #[error("unknown action")]
    ActionBadType,
    /// An action's length is wrong.
    #[error("wrong action length")]
    ActionBadLength,
    /// Unknown experimenter of an action.
    #[error("unknown experimenter of an action")]
    ActionBadExperimenter,
    /// Unknown action of an experimenter.
    #[error("unknown action of an experimenter")]
    ActionBadExperimenterType,
    /// The output port is none that can be.
    #[error("no such output port")]
    ActionBadOutPort,
    /// An argument is out of range.
    #[error("bad argument of an action")]
    ActionBadArgument,
    /// The sender may not use this action.
    #[error("action not permitted")]
    ActionPermission,
    /// More actions than the switch takes.
    #[error("too many actions")]
    ActionTooMany,
    /// There is no such queue.
    #[error("no such queue")]
    ActionBadQueue,
    /// There is no such group.
    #[error("no such group")]
    ActionBadOutGroup,
    /// The match does not imply what the action needs.
    #[error("the action does not fit the match")]
    ActionMatchInconsistent,
    /// The order of actions cannot be honoured in an action set.
    #[error("actions in an order that is not supported")]
    ActionUnsupportedOrder,
    /// The tag's type is none that can be pushed or popped.
    #[error("bad tag type")]
    ActionBadTag,
    /// Set-field names a field that is unknown or may not be set.
    #[error("set-field of a field that cannot be set")]
    ActionBadSetType,
    /// Set-field's length does not fit the field.
    #[error("wrong length of a set-field")]
    ActionBadSetLength,
    /// Set-field's value does not fit the field.
    #[error("bad value of a set-field")]
    ActionBadSetArgument,
    /// No such header can be put around a packet (Open vSwitch's extension).
    #[error("unknown header to put around packets")]
    ActionBadHeaderType,
    /// A header that is to be put around packets has no such property (Open vSwitch's extension).
    #[error("unknown property of a header to put around packets")]
    ActionUnknownProperty,
    /// The property cannot be so (Open vSwitch's extension).
    #[error("bad property of a header to put around packets")]
    ActionBadProperty,
    /// Something in an action that has to be zero is not (Nicira's).
    #[error("what has to be zero in the action is not")]
    ActionMustBeZero,
    /// A conjunction has too few or too many clauses, or not this one (Nicira's).
    #[error("a conjunction of so many clauses, or without such a clause")]
    ActionBadConjunction,

    /// Unknown instruction.
    #[error("unknown instruction")]
    InstructionUnknown,
    /// Known, but this switch or table does not do it.
    #[error("unsupported instruction")]
    InstructionUnsupported,
    /// The table to go to does not exist or does not come later.
    #[error("bad table to go to")]
    InstructionBadTable,
    /// Metadata bits that the switch does not have.
    #[error("unsupported metadata")]
    InstructionBadMetadata,
    /// Metadata mask bits that the switch does not have.
    #[error("unsupported metadata mask")]
    InstructionBadMetadataMask,
    /// Unknown experimenter of an instruction.
    #[error("unknown experimenter of an instruction")]
    InstructionBadExperimenter,
    /// Unknown instruction of an experimenter.
    #[error("unknown instruction of an experimenter")]
    InstructionBadExperimenterType,
    /// An instruction's length is wrong.
    #[error("wrong instruction length")]
    InstructionBadLength,
    /// The sender may not use this instruction.
    #[error("instruction not permitted")]
    InstructionPermission,
    /// The same instruction twice.
    #[error("an instruction given twice")]
    InstructionDuplicate,

    /// Unknown type of match.
    #[error("unknown type of match")]
    MatchBadType,
    /// A match's length is wrong.
    #[error("wrong match length")]
    MatchBadLength,
    /// A tag that cannot be matched.
    #[error("bad tag in a match")]
    MatchBadTag,
    /// A data-link address mask that cannot be matched.
    #[error("bad data-link address mask")]
    MatchBadDlAddressMask,
    /// A network address mask that cannot be matched.
    #[error("bad network address mask")]
    MatchBadNwAddressMask,
    /// A combination of wildcards that cannot be matched, or bits under a wildcard.
    #[error("bad wildcards")]
    MatchBadWildcards,
    /// Unknown match field.
    #[error("unknown match field")]
    MatchBadField,
    /// A value that the field cannot have.
    #[error("bad value of a match field")]
    MatchBadValue,
    /// A mask that the field does not take.
    #[error("bad mask of a match field")]
    MatchBadMask,
    /// The field's prerequisites are not in the match.
    #[error("prerequisites of a match field are missing")]
    MatchBadPrerequisite,
    /// The same field twice.
    #[error("a match field given twice")]
    MatchDuplicateField,
    /// The sender may not match on this.
    #[error("match not permitted")]
    MatchPermission,

    /// A flow-mod failed for a reason without a name.
    #[error("flow modification failed")]
    FlowModUnknown,
    /// The table is full.
    #[error("the flow table is full")]
    FlowModTableFull,
    /// The flow-mod's table does not exist.
    #[error("no such flow table")]
    FlowModBadTable,
    /// A rule of the same priority overlaps and the check was asked for.
    #[error("an overlapping rule of the same priority exists")]
    FlowModOverlap,
    /// The sender may not change flows.
    #[error("flow modification not permitted")]
    FlowModPermission,
    /// A timeout that cannot be kept.
    #[error("unsupported timeout")]
    FlowModBadTimeout,
    /// Unknown flow-mod command.
    #[error("unknown flow modification command")]
    FlowModBadCommand,
    /// Unknown flow-mod flags.
    #[error("unsupported flow modification flags")]
    FlowModBadFlags,
    /// An action list that the table cannot hold in the order given (OpenFlow 1.0).
    #[error("unsupported action list")]
    FlowModUnsupported,

    /// There is a group of this number.
    #[error("there is a group of this number")]
    GroupModExists,
    /// A number that no group may have, or buckets that its kind cannot have.
    #[error("a group that cannot be")]
    GroupModInvalidGroup,
    /// Buckets of unequal weight.
    #[error("unequal weights are not supported")]
    GroupModWeightUnsupported,
    /// No room for another group.
    #[error("no room for another group")]
    GroupModOutOfGroups,
    /// No room for so many buckets.
    #[error("no room for so many buckets")]
    GroupModOutOfBuckets,
    /// Groups that send to groups, or so many of them in a row.
    #[error("too many groups in a row")]
    GroupModChainingUnsupported,
    /// A group of this kind cannot watch a port or group.
    #[error("a group of this kind watches nothing")]
    GroupModWatchUnsupported,
    /// The group would send to itself, or watch itself.
    #[error("the group would be its own successor")]
    GroupModLoop,
    /// There is no such group to change.
    #[error("no such group")]
    GroupModUnknown,
    /// Another group sends to the group that was to be deleted.
    #[error("another group sends to this one")]
    GroupModChained,
    /// Unknown kind of group.
    #[error("unknown kind of group")]
    GroupModBadType,
    /// Unknown group-mod command.
    #[error("unknown group modification command")]
    GroupModBadCommand,
    /// A bucket is not well formed.
    #[error("bad bucket")]
    GroupModBadBucket,
    /// A port or group to watch that cannot be.
    #[error("a port or group that cannot be watched")]
    GroupModBadWatch,
    /// The sender may not change groups.
    #[error("group modification not permitted")]
    GroupModPermission,

    /// There is no such port to change.
    #[error("no such port")]
    PortModBadPort,
    /// The port's hardware address is another.
    #[error("the hardware address is not the port's")]
    PortModBadHwAddr,
    /// Configuration bits that the port does not have.
    #[error("unsupported port configuration")]
    PortModBadConfig,
    /// Features that the port cannot advertise.
    #[error("unsupported advertised features")]
    PortModBadAdvertise,
    /// The sender may not change ports.
    #[error("port modification not permitted")]
    PortModPermission,
    /// There is no such table to change.
    #[error("no such table")]
    TableModBadTable,
    /// A table configuration that this switch does not do.
    #[error("unsupported table configuration")]
    TableModBadConfig,
    /// The sender may not change tables.
    #[error("table modification not permitted")]
    TableModPermission,
    /// There is no such port with queues.
    #[error("no such port")]
    QueueBadPort,
    /// There is no such queue.
    #[error("no such queue")]
    QueueBadQueue,
    /// The sender may not ask about queues.
    #[error("queue operation not permitted")]
    QueuePermission,
    /// Switch configuration flags that this switch does not do.
    #[error("unsupported switch configuration flags")]
    ConfigBadFlags,
    /// A switch configuration value that this switch does not do.
    #[error("unsupported switch configuration value")]
    ConfigBadLength,
    /// The sender may not change the configuration.
    #[error("switch configuration not permitted")]
    ConfigPermission,
    /// The generation id is older than the last.
    #[error("stale generation id")]
    RoleStale,
    /// Roles are not supported.
    #[error("roles are not supported")]
    RoleUnsupported,
    /// Unknown role.
    #[error("unknown role")]
    RoleBad,
    /// Another controller has this short id (1.5).
    #[error("the short id is another controller's")]
    RoleIdInUse,

    /// A meter-mod that failed without a better reason.
    #[error("meter modification failed")]
    MeterModUnknown,
    /// There is a meter of this number.
    #[error("there is a meter of this number")]
    MeterModExists,
    /// A number that no meter may have, or that a rule may not name.
    #[error("no meter that can be meant")]
    MeterModInvalidMeter,
    /// There is no such meter to change or to tell of.
    #[error("no such meter")]
    MeterModUnknownMeter,
    /// Unknown meter-mod command.
    #[error("unknown meter modification command")]
    MeterModBadCommand,
    /// Unknown meter flags, or flags that contradict each other.
    #[error("unsupported meter flags")]
    MeterModBadFlags,
    /// A rate that no band can have.
    #[error("bad rate of a meter band")]
    MeterModBadRate,
    /// A burst that no band can have.
    #[error("bad burst of a meter band")]
    MeterModBadBurst,
    /// An unknown kind of band, or one that this meter cannot have.
    #[error("unsupported kind of meter band")]
    MeterModBadBand,
    /// A band's own value is none that it can have.
    #[error("bad value of a meter band")]
    MeterModBadBandValue,
    /// No room for another meter.
    #[error("no room for another meter")]
    MeterModOutOfMeters,
    /// More bands than a meter has room for.
    #[error("too many meter bands")]
    MeterModOutOfBands,
    /// Table features cannot be set.
    #[error("table features cannot be changed")]
    TableFeaturesPermission,
    /// A table in the table features does not exist.
    #[error("table features for a table that does not exist")]
    TableFeaturesBadTable,
    /// Unknown kind of property (1.4).
    #[error("unknown property")]
    PropertyBadType,
    /// A property's length is wrong.
    #[error("wrong length of a property")]
    PropertyBadLength,
    /// A value that the property does not take.
    #[error("bad value of a property")]
    PropertyBadValue,
    /// The same property twice.
    #[error("a property given twice")]
    PropertyDuplicate,
    /// Unknown experimenter of a property.
    #[error("unknown experimenter of a property")]
    PropertyBadExperimenter,
    /// Unknown property of a known experimenter.
    #[error("unknown property of an experimenter")]
    PropertyBadExperimenterType,
    /// There is no such bucket to insert behind or to remove (1.5).
    #[error("no such bucket")]
    GroupModUnknownBucket,
    /// There is a bucket of this number already (1.5).
    #[error("there is a bucket of this number")]
    GroupModBucketExists,
    /// What surrounds a frame is told by a field of its headers (1.5).
    #[error("a header field where only pipeline fields may be")]
    RequestPipelineFieldsOnly,
    /// A mask of asynchronous messages has bits that mean nothing (1.4).
    #[error("bad mask of asynchronous messages")]
    AsyncInvalid,
    /// An asynchronous message that this switch does not have (1.4).
    #[error("unsupported configuration of asynchronous messages")]
    AsyncUnsupported,
    /// There is no such bundle, or there is one already.
    #[error("no such bundle, or one already")]
    BundleBadId,
    /// The bundle takes no more messages.
    #[error("the bundle is closed")]
    BundleClosed,
    /// The connection has as many bundles as it may.
    #[error("too many bundles")]
    BundleOutOfBundles,
    /// Unknown step of a bundle, or one for the other side.
    #[error("unknown step of a bundle")]
    BundleBadType,
    /// Unknown flags of a bundle, or others than those it was opened with.
    #[error("bad flags of a bundle")]
    BundleBadFlags,
    /// The length of a message in a bundle does not fit.
    #[error("wrong length of a message in a bundle")]
    BundleMessageBadLength,
    /// A message in a bundle has another transaction id than the one it came in.
    #[error("wrong transaction id of a message in a bundle")]
    BundleMessageBadXid,
    /// A message that may not be in a bundle.
    #[error("this message cannot be in a bundle")]
    BundleMessageUnsupported,
    /// The switch holds as many messages in bundles as it may.
    #[error("too many messages in bundles")]
    BundleMessageTooMany,
    /// A message of the bundle failed, so that none was done.
    #[error("a message of the bundle failed")]
    BundleMessageFailed,

    /// A monitor that failed without a better reason, such as want of room.
    #[error("the flow monitor cannot be set up")]
    MonitorUnknown,
    /// There is a monitor of this number.
    #[error("there is a flow monitor of this number")]
    MonitorExists,
    /// There is no such monitor to change or to take away.
    #[error("no such flow monitor")]
    MonitorUnknownMonitor,
    /// Unknown command for a monitor.
    #[error("unknown flow monitor command")]
    MonitorBadCommand,
    /// Flags that a monitor does not take.
    #[error("bad flags of a flow monitor")]
    MonitorBadFlags,
    /// The monitor's table does not exist.
    #[error("no such table to monitor")]
    MonitorBadTable,
    /// A port or group that no rule can send to.
    #[error("no such output to monitor")]
    MonitorBadOut,
    /// Metadata bits that a table does not have.
    #[error("unsupported metadata of a table")]
    TableFeaturesBadMetadata,
    /// A table cannot do what is asked of it.
    #[error("unsupported features of a table")]
    TableFeaturesBadFeatures,
    /// A table cannot be configured so.
    #[error("unsupported capabilities of a table")]
    TableFeaturesBadCapabilities,
    /// A table does not take so many rules, or its size cannot be changed.
    #[error("unsupported size of a table")]
    TableFeaturesBadSize,
    /// Tables cannot be changed in this way.
    #[error("unsupported command for table features")]
    TableFeaturesBadCommand,
    /// More tables than there can be.
    #[error("too many tables")]
    TableFeaturesTooMany,
    /// A bundle is to be done at a time that it does not name, or the other way round (1.5).
    #[error("the time of the bundle is not supported")]
    BundleScheduleUnsupported,
    /// A bundle's time lies too far in the future (1.5).
    #[error("the time of the bundle lies too far in the future")]
    BundleScheduleFuture,
    /// A bundle's time lies too far in the past (1.5).
    #[error("the time of the bundle lies too far in the past")]
    BundleSchedulePast,
    /// A continuation that this switch did not make, or that fits it no more.
    #[error("a continuation that is not of this switch")]
    ResumeStale,
    /// Unknown command for the map of tunnel options.
    #[error("unknown command for the map of tunnel options")]
    TlvBadCommand,
    /// A tunnel option cannot be so long.
    #[error("a tunnel option cannot be so long")]
    TlvBadLength,
    /// There is no such field for a tunnel option.
    #[error("no such field for a tunnel option")]
    TlvBadField,
    /// The values of all tunnel options have no room.
    #[error("no room for the values of so many tunnel options")]
    TlvTableFull,
    /// The field has a tunnel option.
    #[error("the field has a tunnel option")]
    TlvAlreadyMapped,
    /// The tunnel option has a field.
    #[error("the tunnel option has a field")]
    TlvDuplicate,
    /// A rule uses the field of a tunnel option that is to lose it.
    #[error("a rule uses the field of the tunnel option")]
    TlvInUse,
    /// The field has no tunnel option.
    #[error("the field has no tunnel option")]
    TlvUnmapped,
    /// Nothing is told of flows by IPFIX.
    #[error("IPFIX is not configured")]
    IpfixNotConfigured,
}

impl Refusal {
    /// How many there are.
    pub const COUNT: usize = Self::IpfixNotConfigured as usize + 1;
}
