//! The pipeline of an OpenFlow switch (tables, groups, meters and ports), and its reference
//! interpreter: the meaning of the state for a packet, by the letter of the specification.
//!
//! ```text
//!   interpreter   one packet through the tables: actions, groups, learn, pause and resume
//!        |
//!   pipeline      the state as one value, and the commands that change it
//!        |
//!   groups  meters  rules  instructions      verdict, trace: the result of a packet
//!        |
//!   counters  port  limits
//! ```
//!
//! The interpreter is the oracle of the fast path: where the two differ, the fast path is wrong. It
//! finds a rule by linear search in priority order, unless a [`Lookup`] finds it faster. Commands do
//! not search: an index by identity finds the rule that a flow-mod replaces, and rules with equal
//! instructions share them. Neither has an effect on the meaning of the tables.
//!
//! This crate knows no wire version (`openflow` does) and no threads: a clone of [`Pipeline`] is a
//! snapshot that costs a few reference counts.
//!
//! # Examples
//!
//! ```
//! use base::{Instant, PortNo};
//! use packet::{Pool, build::Stack};
//! use pipeline::{Destination, InputFrame, Interpreter, Limits, Pipeline, Verdict};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! for port in [1, 2] {
//!     pipeline.set_port(&flow::PortDesc::new(PortNo(port)));
//! }
//! let rule = flow::text::parse_flow_line("ip,nw_dst=10.0.0.2,actions=dec_ttl,output:2").unwrap();
//! pipeline.flow_mod(&rule, Instant::START).unwrap();
//!
//! let packet = "eth()/ipv4(dst=10.0.0.2,ttl=64)".parse::<Stack>();
//! let input = InputFrame {
//!     frame: packet.unwrap().build(),
//!     in_port: PortNo(1),
//!     now: Instant::START,
//! };
//! let (mut pool, mut verdict) = (Pool::new(8), Verdict::new());
//! Interpreter::new(0).run(&pipeline, input, &mut pool, &mut (), &mut verdict);
//! assert_eq!(verdict.egress[0].to, Destination::Port(PortNo(2)));
//! ```

mod bare_frame;
mod counters;
mod fragment_store;
mod groups;
mod instructions;
mod interpreter;
mod limits;
mod lookup;
mod meters;
mod pipeline;
mod port;
mod rules;
mod stable_hash;
#[cfg(test)]
mod testing;
mod trace;
mod tracking;
mod verdict;

pub use counters::{Counters, Totals};
pub use fragment_store::FragmentStore;
pub use groups::{Group, GroupBucket, symmetric_hash};
pub use instructions::SharedInstructions;
pub use instructions::program_slot::ProgramSlot;
pub use interpreter::pause::{FinalActionSet, Pause, PausedPacket};
pub use interpreter::resume::{PendingRule, ResumeAt, ResumePoint};
pub use interpreter::turn::{SavedMemory, Turn, TurnPlace, TurnState};
pub use interpreter::{InputFrame, Interpreter};
pub use limits::{
    ACTIONS_PER_FRAME_MAX, BUCKETS_PER_FRAME_MAX, Limits, NESTING_MAX, OUTPUTS_PER_FRAME_MAX,
    RECURSION_MAX, RESUBMITS_MAX,
};
pub use lookup::{Lookup, LookupResult, LookupTables};
pub use meters::{MeterDecision, raise_drop_precedence};
pub use pipeline::{
    EvictionPolicy, MissPolicy, NameAuthor, Pipeline, TableMiss, check_internal_table,
};
pub use port::PortView;
pub use rules::{Changes, Removal, Rule, RuleEvent};
pub use trace::{STACK_UNDERFLOW, Trace, TracePrinter};
pub use tracking::{
    ConntrackSource, connection_fields, conntrack_request, is_translated, track_packet,
    write_outcome,
};
pub use verdict::{Cause, Destination, DropReason, Egress, LearnRequest, PacketInMeta, Verdict};
