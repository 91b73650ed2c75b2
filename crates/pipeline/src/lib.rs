//! The state that a controller builds (tables, groups and meters) and what it
//! means for a frame, by the letter of the specification.
//!
//! Not here: versions (the codec's), threads (a clone is a snapshot, and costs
//! a few reference counts), speed (the fast path's: this is what it is judged by).
//! Nothing is indexed or cached; a lookup looks at one rule after the other.

mod action_set;
mod actions;
mod asked;
mod bucket_run;
mod check;
mod check_extension;
mod choice;
mod conjunction;
mod counters;
mod deed;
mod encap;
mod expiry;
mod extension;
mod flow_mod;
mod group;
mod group_mod;
mod handover;
mod hash;
mod history;
mod index;
mod interpreter;
mod known;
mod learn;
mod learners;
mod limits;
mod lookup;
mod meter;
mod meter_mod;
mod output;
mod packet_out;
mod pause;
mod pipeline;
mod port;
mod recent;
mod registers;
mod rule;
mod runs;
mod settings;
mod statistics;
mod story;
mod table;
#[cfg(test)]
mod testing;
mod tlv;
mod trace;
mod tunnel;
mod users;
mod verdict;

pub use bucket_run::raise_drop_precedence;
pub use counters::{Counters, Totals};
pub use deed::SharedInstructions;
pub use flow_mod::{Changes, Removal};
pub use group::{Group, GroupBucket, symmetric_hash};
pub use handover::{PendingRule, ResumeAt, ResumeState};
pub use history::RuleEvent;
pub use interpreter::{InputFrame, Interpreter};
pub use learn::LearnRequest;
pub use limits::{BUCKETS_PER_FRAME_MAX, Limits};
pub use lookup::{Lookup, LookupResult, LookupTables};
pub use meter::MeterDecision;
pub use pause::PausedPacket;
pub use pipeline::{MissPolicy, Pipeline};
pub use port::PortView;
pub use rule::Rule;
pub use story::TracePrinter;
pub use trace::Trace;
pub use verdict::{Cause, Destination, DropReason, Egress, PacketInMeta, Verdict};
