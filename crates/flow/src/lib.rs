//! The language that all crates speak: match fields, matches, actions,
//! commands, events, statistics, and the reasons to decline.
//!
//! One meaning for every OpenFlow version. Nothing here knows how a version
//! writes it down, how a table finds it, or that sockets exist.

mod action;
mod command;
mod compose;
mod continuation;
mod event;
mod extension;
pub mod field;
mod flow_key;
mod group;
mod matching;
mod meter;
mod monitor;
mod options;
mod pipeline_fields;
mod port;
mod refusal;
mod statistics;
mod table;
pub mod text;
mod tlv;
mod wide;

pub use action::{Action, Instructions, MaxLen, MetadataWrite};
pub use command::{
    Consistency, FlowFlags, FlowMod, FlowModCommand, FragmentHandling, MissingRule, PacketOut,
    PortMod, Resume, Role, RoleRequest, ShortId, SwitchConfig,
};
pub use compose::{compose, compose_with};
pub use continuation::{CONTINUATION_BYTES_MAX, Continuation, ContinuationStep};
pub use event::{FlowRemoved, FlowRemovedReason, PacketIn, PacketInReason};
pub use extension::{
    BundleAction, BundleAlgorithm, ControllerAction, Encap, Extension, HashFields, Learn,
    LearnFlags, LearnSource, LearnSpec, Multipath, MultipathAlgorithm, NESTING_MAX, NshProperty,
    PacketType, SampleAction, SampleDirection, Subfield,
};
pub use field::Field;
pub use flow_key::FlowKey;
pub use group::{
    Bucket, BucketStats, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupMod,
    GroupModCommand, GroupStats, Selection, SelectionFields, SelectionMethod,
};
pub use matching::{Match, MatchBuilder, OptionTerms, Term, TermHead, TermLayout, Terms};
pub use meter::{
    Band, BandKind, BandKinds, BandStats, MeterConfig, MeterFeatures, MeterFlags, MeterMod,
    MeterModCommand, MeterStats,
};
pub use monitor::{
    FlowChange, FlowEvent, FlowUpdate, Monitor, MonitorFlags, MonitorId, MonitorRequest,
};
pub use options::{OptionTerm, TunnelOptions};
pub use pipeline_fields::PipelineFields;
pub use port::{PortConfig, PortDesc, PortFeatures, PortReason, PortState, PortStatus};
pub use refusal::Refusal;
pub use statistics::{
    AggregateStats, Capabilities, FlowStats, FlowStatsRequest, IpfixScope, IpfixStats, PortStats,
    QueueStats, SwitchDescription, SwitchFeatures, TableStats,
};
pub use table::{
    EvictionFlags, TableDesc, TableFlags, TableMod, TableReason, TableStatus, Vacancy,
    VacancyLimits,
};
pub use tlv::{TlvCommand, TlvMapping, TlvTable, TlvTableMod};
pub use wide::Wide;
