//! The state that a controller builds (tables, groups and meters) and what it
//! means for a frame, by the letter of the specification.
//!
//! Not here: versions (the codec's), threads (a clone is a snapshot, and costs
//! a few reference counts), speed (the fast path's: this is what it is judged by).
//! Nothing is indexed or cached; a lookup looks at one rule after the other.

mod action_set;
mod actions;
mod check;
mod conjunction;
mod counters;
mod diff;
mod encap;
mod extension;
mod field_facts;
mod flow_mod;
mod group;
mod group_actions;
mod group_table;
mod hash_select;
mod instructions;
mod interner;
mod interpreter;
mod learn;
mod learn_limits;
mod limits;
mod lookup;
mod match_facts;
mod meter;
mod meter_table;
mod output;
mod packet_out;
mod pause;
mod pipeline;
mod port;
mod references;
mod registers;
mod resume;
mod rule;
mod rule_index;
mod rule_list;
mod stable_hash;
mod statistics;
mod table;
mod table_settings;
#[cfg(test)]
mod testing;
mod timeouts;
mod tlv_map;
mod trace;
mod tunnel;
mod verdict;

pub use counters::{Counters, Totals};
pub use diff::RuleEvent;
pub use flow_mod::{Changes, Removal};
pub use group::{Group, GroupBucket, symmetric_hash};
pub use group_actions::raise_drop_precedence;
pub use instructions::SharedInstructions;
pub use interpreter::{InputFrame, Interpreter};
pub use learn::LearnRequest;
pub use limits::{BUCKETS_PER_FRAME_MAX, Limits};
pub use lookup::{Lookup, LookupResult, LookupTables};
pub use meter::MeterDecision;
pub use pause::PausedPacket;
pub use pipeline::{MissPolicy, Pipeline};
pub use port::PortView;
pub use resume::{PendingRule, ResumeAt, ResumeState};
pub use rule::Rule;

pub use trace::{Trace, TracePrinter};
pub use verdict::{Cause, Destination, DropReason, Egress, PacketInMeta, Verdict};
