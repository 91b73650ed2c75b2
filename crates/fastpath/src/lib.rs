//! The compiled data path: the tables of a [`pipeline::Pipeline`], compiled for lookup, and the
//! instructions of rules, compiled to action programs.
//!
//! It decides no meaning. The interpreter of `pipeline` is the reference; where this crate differs
//! from it, this crate is wrong. What is not compiled is executed by the interpreter, from the point
//! that the compiled path has reached, and is counted by its [`SlowPathReason`].
//!
//! # Synopsis
//!
//! A [`Classifier`] is the single writer of the compiled tables. It receives the changes of a
//! pipeline and publishes [`View`]s, which any number of workers read without locks. A [`Runner`] is
//! the data path of one worker: it takes a batch of frames through a view, and returns a
//! [`FrameOutcome`] for each.
//!
//! ```
//! use base::{Instant, PortNo};
//! use fastpath::{BatchContext, Classifier, FrameOutcome, Runner};
//! use flow::PortDesc;
//! use flow::text::parse_flow_line;
//! use packet::build::Stack;
//! use packet::Pool;
//! use pipeline::{Limits, Pipeline};
//!
//! // Control thread: change the pipeline, queue the changes, publish a view.
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! pipeline.set_port(&PortDesc::new(PortNo(1)));
//! pipeline.set_port(&PortDesc::new(PortNo(2)));
//! let command = parse_flow_line("tcp,tp_dst=80,actions=output:2").expect("a flow");
//! let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//! classifier.queue_changes(&changes);
//! let view = classifier.publish(&pipeline);
//!
//! // Worker: run a batch of frames.
//! let stacks = ["eth / ipv4 / tcp(dst=80)", "eth / ipv4 / udp(dst=80)"];
//! let mut frames = stacks.map(|stack| stack.parse::<Stack>().expect("a frame").build());
//! let context = BatchContext {
//!     pipeline: &pipeline,
//!     view: &view,
//!     in_port: PortNo(1),
//!     now: Instant::START,
//! };
//! let (mut runner, mut pool) = (Runner::new(0), Pool::new(2));
//! let mut batch = runner.begin(context, &mut frames);
//! match batch.next(&mut pool) {
//!     Some(FrameOutcome::Forward(frames, port)) => assert_eq!((frames.len(), port), (1, PortNo(2))),
//!     other => panic!("{other:?}"),
//! }
//! match batch.next(&mut pool) {
//!     Some(FrameOutcome::Verdict(verdict)) => assert!(verdict.egress.is_empty()),
//!     other => panic!("{other:?}"),
//! }
//! assert!(batch.next(&mut pool).is_none());
//! ```
//!
//! # Description
//!
//! A frame passes these stages. The modules of this crate have the same names, and each begins with
//! a description of its algorithm.
//!
//! ```text
//!   frame
//!     | packed_key       headers to 64-bit words
//!     v
//!   ingress_tables       tables on the ingress port only: looked up once a batch
//!     |
//!   walk_cache           exact-match cache of effects, per ct   -- hit --> verdict
//!     |
//!   flow_cache           exact-match cache over all tables      -- hit --> leaves by a port
//!     |
//!   batch_lookup         32 packets, table by table             -- done -> leaves by a port
//!     |   classifier     view of each table:
//!     |     tuple          hash table for each mask, in segments
//!     |     compiled_set   linear | prefix_table | bitvector (dense, aggregated)
//!     v
//!   exec                 action program, packet by packet       -- done -> verdict
//!     |
//!   interpreter          (crate `pipeline`)                     -- done -> verdict
//! ```
//!
//! | module | algorithm | cost of a lookup, in modelled instructions |
//! |---|---|---|
//! | `tuple`, `segment` | tuple space search (Srinivasan, Suri, Varghese 1999), extendible hashing | 110 for each mask |
//! | `linear` | linear search, vectorised over packets | 15 + 10 a rule + 7 a word |
//! | `prefix_table`, `interval_table` | range search (Lampson, Srinivasan, Varghese 1998) | 80 + 7 a condition + 20 a level |
//! | `bitvector::dense` | bit vectors (Lakshman, Stiliadis 1998) | 45 + 75 or 22 a field + 4 a quad |
//! | `bitvector::aggregated` | aggregated bit vectors (Baboescu, Varghese 2001) | 60 + 75 or 22 a field + ... |
//! | `bitvector::cross_product` | cross-producting (Gupta, McKeown 1999) | one table access a field |
//! | `classifier::merge_plan` | log-structured merge (O'Neil et al. 1996) | |
//! | `flow_cache` | exact-match cache (Open vSwitch EMC) | one hash, whatever the number of tables |
//! | `walk_cache` | exact-match cache of effects (Open vSwitch megaflows) | one hash for each `ct` |
//! | `epoch` | multiversion concurrency control | |
//!
//! # Costs
//!
//! The cost of a lookup depends on the rules. Two exceptions depend on the traffic: a pipeline of
//! many tables costs less for packets of few flows, which hit the flow cache; and packets of one
//! batch that match the same rules cost less than packets that match different ones. No traffic
//! makes a lookup cost more than the rules alone determine: masks come from rules only, hashes are
//! keyed, and a cache that does not help is disabled.
//!
//! [`Classifier::describe`] reports form, size and cost of each table, and a [`LookupProbe`]
//! executes lookups to measure.
//!
//! # Limits
//!
//! Rules on tunnel options, and more than 32,768 rules that differ only in their priority, have no
//! compiled form. Packets that may match one are looked up by the interpreter, which compares up to
//! 64 of these rules; if a table has more, it scans the table.

mod action_program;
mod batch_lookup;
mod batch_mask;
mod batch_state;
mod batch_stats;
mod bitvector;
mod cache_policy;
mod classifier;
mod compiled_set;
mod egress_cache;
mod epoch;
mod exec;
mod flow_cache;
mod frame_progress;
mod header_rewrite;
mod ingress_tables;
mod interval_table;
mod key_hash;
mod linear;
mod lookup_probe;
mod mask;
mod match_result;
mod packed_key;
mod prefix_table;
mod rank;
mod runner;
mod segment;
#[cfg(test)]
mod testing;
mod tuple;
mod walk_cache;

pub use action_program::SlowPathReason;
pub use batch_state::BatchContext;
pub use classifier::{Classifier, LookupScratch, Savepoint, TableDescription, View, ViewLookup};
pub use exec::FrameOutcome;
pub use lookup_probe::LookupProbe;
pub use runner::{BatchRun, Runner};
