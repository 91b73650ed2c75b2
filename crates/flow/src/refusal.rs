//! Why the switch declines. One name for one reason; its number in a version is the codec's.

/// Writes the enumeration: of each reason its name, what it is, and what is said of it.
macro_rules! refusals {
    ($($(#[$what:meta])+ $name:ident => $text:literal,)+) => {
        /// A reason for an error message, in the specification's own divisions (OF 1.3.5, 7.4.4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        pub enum Refusal {
            $($(#[$what])+ #[error($text)] $name,)+
        }
    };
}

refusals! {
    /// No version in common.
    HelloIncompatible => "no protocol version in common",
    /// This peer may not connect.
    HelloPermission => "this peer may not connect",

    /// The header's version is not the negotiated one.
    RequestBadVersion => "the message's version is not the negotiated one",
    /// The message type is unknown, or not one a switch receives.
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
    RequestBufferEmpty => "the buffer is empty",
    /// There is no such buffer.
    RequestBufferUnknown => "no such buffer",
    /// There is no such table.
    RequestBadTable => "no such table",
    /// A slave may not change anything.
    RequestIsSlave => "denied: the controller is a slave",
    /// There is no such port.
    RequestBadPort => "no such port",
    /// The frame in a packet-out cannot be used.
    RequestBadPacket => "unusable frame",
    /// A sequence of multipart requests outgrew the switch.
    RequestMultipartOverflow => "multipart request too long",

    /// Something that has to be zero is not (Nicira's).
    RequestMustBeZero => "what has to be zero is not",

    /// Unknown action type.
    ActionBadType => "unknown action",
    /// An action's length is wrong.
    ActionBadLength => "wrong action length",
    /// Unknown experimenter of an action.
    ActionBadExperimenter => "unknown experimenter of an action",
    /// Unknown action of an experimenter.
    ActionBadExperimenterType => "unknown action of an experimenter",
    /// The output port is none that can be.
    ActionBadOutPort => "no such output port",
    /// An argument is out of range.
    ActionBadArgument => "bad argument of an action",
    /// The sender may not use this action.
    ActionPermission => "action not permitted",
    /// More actions than the switch takes.
    ActionTooMany => "too many actions",
    /// There is no such queue.
    ActionBadQueue => "no such queue",
    /// There is no such group.
    ActionBadOutGroup => "no such group",
    /// The match does not imply what the action needs.
    ActionMatchInconsistent => "the action does not fit the match",
    /// The order of actions cannot be honoured in an action set.
    ActionUnsupportedOrder => "actions in an order that is not supported",
    /// The tag's type is none that can be pushed or popped.
    ActionBadTag => "bad tag type",
    /// Set-field names a field that is unknown or may not be set.
    ActionBadSetType => "set-field of a field that cannot be set",
    /// Set-field's length does not fit the field.
    ActionBadSetLength => "wrong length of a set-field",
    /// Set-field's value does not fit the field.
    ActionBadSetArgument => "bad value of a set-field",
    /// No such header can be put around a packet (Open vSwitch's extension).
    ActionBadHeaderType => "unknown header to put around packets",
    /// A header that is to be put around packets has no such property (Open vSwitch's extension).
    ActionUnknownProperty => "unknown property of a header to put around packets",
    /// The property cannot be so (Open vSwitch's extension).
    ActionBadProperty => "bad property of a header to put around packets",
    /// Something in an action that has to be zero is not (Nicira's).
    ActionMustBeZero => "what has to be zero in the action is not",
    /// A conjunction has too few or too many clauses, or not this one (Nicira's).
    ActionBadConjunction => "a conjunction of so many clauses, or without such a clause",

    /// Unknown instruction.
    InstructionUnknown => "unknown instruction",
    /// Known, but this switch or table does not do it.
    InstructionUnsupported => "unsupported instruction",
    /// The table to go to does not exist or does not come later.
    InstructionBadTable => "bad table to go to",
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
    InstructionDuplicate => "an instruction given twice",

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
    /// A combination of wildcards that cannot be matched, or bits under a wildcard.
    MatchBadWildcards => "bad wildcards",
    /// Unknown match field.
    MatchBadField => "unknown match field",
    /// A value that the field cannot have.
    MatchBadValue => "bad value of a match field",
    /// A mask that the field does not take.
    MatchBadMask => "bad mask of a match field",
    /// The field's prerequisites are not in the match.
    MatchBadPrerequisite => "prerequisites of a match field are missing",
    /// The same field twice.
    MatchDuplicateField => "a match field given twice",
    /// The sender may not match on this.
    MatchPermission => "match not permitted",

    /// A flow-mod failed for a reason without a name.
    FlowModUnknown => "flow modification failed",
    /// The table is full.
    FlowModTableFull => "the flow table is full",
    /// The flow-mod's table does not exist.
    FlowModBadTable => "no such flow table",
    /// A rule of the same priority overlaps and the check was asked for.
    FlowModOverlap => "an overlapping rule of the same priority exists",
    /// The sender may not change flows.
    FlowModPermission => "flow modification not permitted",
    /// A timeout that cannot be kept.
    FlowModBadTimeout => "unsupported timeout",
    /// Unknown flow-mod command.
    FlowModBadCommand => "unknown flow modification command",
    /// Unknown flow-mod flags.
    FlowModBadFlags => "unsupported flow modification flags",
    /// An action list that the table cannot hold in the order given (OpenFlow 1.0).
    FlowModUnsupported => "unsupported action list",

    /// There is a group of this number.
    GroupModExists => "there is a group of this number",
    /// A number that no group may have, or buckets that its kind cannot have.
    GroupModInvalidGroup => "a group that cannot be",
    /// Buckets of unequal weight.
    GroupModWeightUnsupported => "unequal weights are not supported",
    /// No room for another group.
    GroupModOutOfGroups => "no room for another group",
    /// No room for so many buckets.
    GroupModOutOfBuckets => "no room for so many buckets",
    /// Groups that send to groups, or so many of them in a row.
    GroupModChainingUnsupported => "too many groups in a row",
    /// A group of this kind cannot watch a port or group.
    GroupModWatchUnsupported => "a group of this kind watches nothing",
    /// The group would send to itself, or watch itself.
    GroupModLoop => "the group would be its own successor",
    /// There is no such group to change.
    GroupModUnknown => "no such group",
    /// Another group sends to the group that was to be deleted.
    GroupModChained => "another group sends to this one",
    /// Unknown kind of group.
    GroupModBadType => "unknown kind of group",
    /// Unknown group-mod command.
    GroupModBadCommand => "unknown group modification command",
    /// A bucket is not well formed.
    GroupModBadBucket => "bad bucket",
    /// A port or group to watch that cannot be.
    GroupModBadWatch => "a port or group that cannot be watched",
    /// The sender may not change groups.
    GroupModPermission => "group modification not permitted",

    /// There is no such port to change.
    PortModBadPort => "no such port",
    /// The port's hardware address is another.
    PortModBadHwAddr => "the hardware address is not the port's",
    /// Configuration bits that the port does not have.
    PortModBadConfig => "unsupported port configuration",
    /// SwitchFeatures that the port cannot advertise.
    PortModBadAdvertise => "unsupported advertised features",
    /// The sender may not change ports.
    PortModPermission => "port modification not permitted",
    /// There is no such table to change.
    TableModBadTable => "no such table",
    /// A table configuration that this switch does not do.
    TableModBadConfig => "unsupported table configuration",
    /// The sender may not change tables.
    TableModPermission => "table modification not permitted",
    /// There is no such port with queues.
    QueueBadPort => "no such port",
    /// There is no such queue.
    QueueBadQueue => "no such queue",
    /// The sender may not ask about queues.
    QueuePermission => "queue operation not permitted",
    /// Switch configuration flags that this switch does not do.
    ConfigBadFlags => "unsupported switch configuration flags",
    /// A switch configuration value that this switch does not do.
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
    RoleIdInUse => "the short id is another controller's",

    /// A meter-mod that failed without a better reason.
    MeterModUnknown => "meter modification failed",
    /// There is a meter of this number.
    MeterModExists => "there is a meter of this number",
    /// A number that no meter may have, or that a rule may not name.
    MeterModInvalidMeter => "no meter that can be meant",
    /// There is no such meter to change or to tell of.
    MeterModUnknownMeter => "no such meter",
    /// Unknown meter-mod command.
    MeterModBadCommand => "unknown meter modification command",
    /// Unknown meter flags, or flags that contradict each other.
    MeterModBadFlags => "unsupported meter flags",
    /// A rate that no band can have.
    MeterModBadRate => "bad rate of a meter band",
    /// A burst that no band can have.
    MeterModBadBurst => "bad burst of a meter band",
    /// An unknown kind of band, or one that this meter cannot have.
    MeterModBadBand => "unsupported kind of meter band",
    /// A band's own value is none that it can have.
    MeterModBadBandValue => "bad value of a meter band",
    /// No room for another meter.
    MeterModOutOfMeters => "no room for another meter",
    /// More bands than a meter has room for.
    MeterModOutOfBands => "too many meter bands",
    /// Table features cannot be set.
    TableFeaturesPermission => "table features cannot be changed",
    /// A table in the table features does not exist.
    TableFeaturesBadTable => "table features for a table that does not exist",
    /// Unknown kind of property (1.4).
    PropertyBadType => "unknown property",
    /// A property's length is wrong.
    PropertyBadLength => "wrong length of a property",
    /// A value that the property does not take.
    PropertyBadValue => "bad value of a property",
    /// The same property twice.
    PropertyDuplicate => "a property given twice",
    /// Unknown experimenter of a property.
    PropertyBadExperimenter => "unknown experimenter of a property",
    /// Unknown property of a known experimenter.
    PropertyBadExperimenterType => "unknown property of an experimenter",
    /// There is no such bucket to insert behind or to remove (1.5).
    GroupModUnknownBucket => "no such bucket",
    /// There is a bucket of this number already (1.5).
    GroupModBucketExists => "there is a bucket of this number",
    /// What surrounds a frame is told by a field of its headers (1.5).
    RequestPipelineFieldsOnly => "a header field where only pipeline fields may be",
    /// A mask of asynchronous messages has bits that mean nothing (1.4).
    AsyncInvalid => "bad mask of asynchronous messages",
    /// An asynchronous message that this switch does not have (1.4).
    AsyncUnsupported => "unsupported configuration of asynchronous messages",
    /// There is no such bundle, or there is one already.
    BundleBadId => "no such bundle, or one already",
    /// The bundle takes no more messages.
    BundleClosed => "the bundle is closed",
    /// The connection has as many bundles as it may.
    BundleOutOfBundles => "too many bundles",
    /// Unknown step of a bundle, or one for the other side.
    BundleBadType => "unknown step of a bundle",
    /// Unknown flags of a bundle, or others than those it was opened with.
    BundleBadFlags => "bad flags of a bundle",
    /// The length of a message in a bundle does not fit.
    BundleMessageBadLength => "wrong length of a message in a bundle",
    /// A message in a bundle has another transaction id than the one it came in.
    BundleMessageBadXid => "wrong transaction id of a message in a bundle",
    /// A message that may not be in a bundle.
    BundleMessageUnsupported => "this message cannot be in a bundle",
    /// The switch holds as many messages in bundles as it may.
    BundleMessageTooMany => "too many messages in bundles",
    /// A message of the bundle failed, so that none was done.
    BundleMessageFailed => "a message of the bundle failed",

    /// A monitor that failed without a better reason, such as want of room.
    MonitorUnknown => "the flow monitor cannot be set up",
    /// There is a monitor of this number.
    MonitorExists => "there is a flow monitor of this number",
    /// There is no such monitor to change or to take away.
    MonitorUnknownMonitor => "no such flow monitor",
    /// Unknown command for a monitor.
    MonitorBadCommand => "unknown flow monitor command",
    /// Flags that a monitor does not take.
    MonitorBadFlags => "bad flags of a flow monitor",
    /// The monitor's table does not exist.
    MonitorBadTable => "no such table to monitor",
    /// A port or group that no rule can send to.
    MonitorBadOut => "no such output to monitor",
    /// Metadata bits that a table does not have.
    TableFeaturesBadMetadata => "unsupported metadata of a table",
    /// A table cannot do what is asked of it.
    TableFeaturesBadFeatures => "unsupported features of a table",
    /// A table cannot be configured so.
    TableFeaturesBadCapabilities => "unsupported capabilities of a table",
    /// A table does not take so many rules, or its size cannot be changed.
    TableFeaturesBadSize => "unsupported size of a table",
    /// Tables cannot be changed in this way.
    TableFeaturesBadCommand => "unsupported command for table features",
    /// More tables than there can be.
    TableFeaturesTooMany => "too many tables",
    /// A bundle is to be done at a time that it does not name, or the other way round (1.5).
    BundleScheduleUnsupported => "the time of the bundle is not supported",
    /// A bundle's time lies too far in the future (1.5).
    BundleScheduleFuture => "the time of the bundle lies too far in the future",
    /// A bundle's time lies too far in the past (1.5).
    BundleSchedulePast => "the time of the bundle lies too far in the past",
    /// A continuation that this switch did not make, or that fits it no more.
    ResumeStale => "a continuation that is not of this switch",
    /// Unknown command for the map of tunnel options.
    TlvBadCommand => "unknown command for the map of tunnel options",
    /// A tunnel option cannot be so long.
    TlvBadLength => "a tunnel option cannot be so long",
    /// There is no such field for a tunnel option.
    TlvBadField => "no such field for a tunnel option",
    /// The values of all tunnel options have no room.
    TlvTableFull => "no room for the values of so many tunnel options",
    /// The field has a tunnel option.
    TlvAlreadyMapped => "the field has a tunnel option",
    /// The tunnel option has a field.
    TlvDuplicate => "the tunnel option has a field",
    /// A rule uses the field of a tunnel option that is to lose it.
    TlvInUse => "a rule uses the field of the tunnel option",
    /// The field has no tunnel option.
    TlvUnmapped => "the field has no tunnel option",
    /// Nothing is told of flows by IPFIX.
    IpfixNotConfigured => "IPFIX is not configured",
}

impl Refusal {
    /// How many there are.
    pub const COUNT: usize = Self::IpfixNotConfigured as usize + 1;
}
