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
mod group;
mod key;
mod matching;
mod meter;
mod monitor;
mod options;
mod port;
mod refusal;
mod registers;
mod statistics;
mod table;
pub mod text;
mod tlv;
mod wide;

pub use action::{Action, Instructions, MaxLen, MetadataWrite};
pub use command::{
    Consistency, FlowFlags, FlowMod, FlowModCommand, FragmentHandling, Missing, PacketOut, PortMod,
    Resume, Role, RoleRequest, ShortId, SwitchConfig,
};
pub use compose::{compose, compose_with};
pub use continuation::{CONTINUATION_BYTES_MAX, Continuation, Step};
pub use event::{FlowRemoved, FlowRemovedReason, PacketIn, PacketInReason};
pub use extension::{
    Bundle, BundleAlgorithm, Encap, Extension, HashFields, Learn, LearnFlags, LearnSource,
    LearnSpec, Multipath, MultipathAlgorithm, NESTING_MAX, NshProperty, PacketType, Part, Sample,
    SampleDirection, ToController,
};
pub use field::Field;
pub use group::{
    Bucket, BucketStats, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupMod,
    GroupModCommand, GroupStats, Selection, SelectionFields, SelectionMethod,
};
pub use key::Key;
pub use matching::{Layout, Match, MatchBuilder, OptionTerms, Term, TermHead, Terms};
pub use meter::{
    Band, BandKind, BandKinds, BandStats, MeterConfig, MeterFeatures, MeterFlags, MeterMod,
    MeterModCommand, MeterStats,
};
pub use monitor::{
    FlowChange, FlowEvent, FlowUpdate, Monitor, MonitorFlags, MonitorId, MonitorRequest,
};
pub use options::{OptionTerm, TunnelOptions};
pub use port::{PortConfig, PortDesc, PortFeatures, PortReason, PortState, PortStatus};
pub use refusal::Refusal;
pub use registers::Registers;
pub use statistics::{
    AggregateStats, Capabilities, Description, Features, FlowStats, FlowStatsRequest, IpfixOf,
    IpfixStats, PortStats, QueueStats, TableStats,
};
pub use table::{
    EvictionFlags, TableDesc, TableFlags, TableMod, TableReason, TableStatus, Vacancy,
    VacancyLimits,
};
pub use tlv::{TlvCommand, TlvMapping, TlvTable, TlvTableMod};
pub use wide::Wide;
