//! The common vocabulary of all crates: match fields, matches, actions, commands, events,
//! statistics and refusals, with their text form.
//!
//! Each type has one meaning for every OpenFlow version. How a version encodes it is the subject of
//! crate `openflow`, how tables execute it that of `pipeline` and `fastpath`. There is no I/O here.
//!
//! # Overview
//!
//! | subject | items |
//! |---|---|
//! | match fields | [`Field`], [`field`] (table, prerequisites, masks, OXM and NXM headers) |
//! | the values of one packet | [`FlowKey`], [`PipelineFields`], [`TunnelOptions`] |
//! | matches | [`Match`], [`MatchBuilder`], [`Term`], [`OptionTerm`] |
//! | actions | [`Action`], [`Instructions`], [`Extension`] (Nicira and Open vSwitch) |
//! | commands | [`FlowMod`], [`GroupMod`], [`MeterMod`], [`PacketOut`], [`PortMod`], [`TableMod`], ... |
//! | asynchronous messages | [`PacketIn`], [`FlowRemoved`], [`PortStatus`], [`TableStatus`], [`FlowUpdate`] |
//! | statistics | [`FlowStats`], [`PortStats`], [`GroupStats`], [`MeterStats`], ... |
//! | errors | [`Refusal`] |
//! | text form of `ovs-ofctl` | [`text`], and `FromStr` and `Display` of the types |
//! | a frame for a match | [`compose()`] |
//!
//! ```
//! use flow::{Action, Field, FlowMod, Refusal};
//!
//! let flow: FlowMod = "priority=10,tcp,tp_dst=80 actions=output:2".parse().unwrap();
//! assert_eq!(flow.matching.exact(Field::TcpDst), Some(80));
//! assert_eq!(flow.instructions.apply, [Action::output(base::PortNo(2))]);
//!
//! // A match cannot be invalid.
//! let result = flow.matching.with(Field::TcpDst, 443);
//! assert_eq!(result, Err(Refusal::MatchDuplicateField));
//! ```
//!
//! # Supported
//!
//! - The match fields and actions of OpenFlow 1.0 to 1.5 (`docs/conformance.md` lists them all).
//! - The fields of `ovs-fields(7)` and the actions of `ovs-actions(7)` of Open vSwitch 3.1, **not**
//!   including connection tracking (`ct_*`, `ct`, `nat`), `skb_priority` and the IGMP fields.
//! - Hash selection of groups (Netronome), flow monitors, bundles and TLV maps.
//!
//! Two tests compare the tables of this crate with those two manual pages, row by row.

mod action;
mod command;
mod compose;
mod connection_fields;
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
pub use compose::{HeaderFields, compose};
pub use connection_fields::ConnectionFields;
pub use continuation::{CONTINUATION_BYTES_MAX, Continuation, ContinuationStep};
pub use event::{FlowRemoved, FlowRemovedReason, PacketIn, PacketInReason};
pub use extension::{
    BundleAction, BundleAlgorithm, ConntrackAction, ConntrackFlags, ConntrackZone,
    ControllerAction, Encap, Extension, HashFields, Learn, LearnFlags, LearnSource, LearnSpec,
    Multipath, MultipathAlgorithm, NESTING_MAX, NatAction, NatAddresses, NatFlags, NshProperty,
    PacketType, SampleAction, SampleDirection, SampleId, Subfield, writes_connection,
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
pub use pipeline_fields::{Erspan, Gtpu, PipelineFields};
pub use port::{PortConfig, PortDesc, PortFeatures, PortReason, PortState, PortStatus};
pub use refusal::Refusal;
pub use statistics::{
    AggregateStats, Capabilities, FlowStats, FlowStatsRequest, IpfixScope, IpfixStats, PortStats,
    QueueStats, SwitchDescription, SwitchFeatures, TableStats, UNAVAILABLE,
};
pub use table::{
    EvictionFlags, TableDesc, TableFlags, TableMod, TableReason, TableStatus, Vacancy,
    VacancyLimits,
};
pub use tlv::{TlvCommand, TlvMapping, TlvTable, TlvTableMod};
pub use wide::Wide;
