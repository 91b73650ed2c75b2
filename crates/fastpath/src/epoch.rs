//! Publication: how one writer changes tables while workers read them.
//!
//! The scheme is multiversion concurrency control (Open vSwitch: the versions of
//! `struct classifier`, `ovs_version_t`). Every publication has a number, its *epoch*. An entry
//! stores the epoch in which it was born and the epoch in which it died. A reader has a
//! [`View`], which holds an epoch `e` and references to the tables, and sees an entry if
//!
//! ```text
//!     born <= e < died
//!
//!     epoch        1      2      3      4      5
//!     rule A       [born ------------- died)
//!     rule B                     [born ---------------->
//!     view of 2           A
//!     view of 3                  A, B
//!     view of 4                         B
//! ```
//!
//! So the writer changes memory in place while older views stay as they were: a batch of frames
//! sees all of a bundle or nothing of it. A reader takes no lock and never waits; a view costs a
//! few reference counts to make. Where memory cannot be changed in place (a segment is full, a
//! compiled set is merged), the writer builds a replacement and publishes it with the next view;
//! the old memory is freed with the last view that refers to it.
//!
//! Cost of a publication without replacement: the writes of its changes, and one [`View`] of
//! three words. Cost for a reader: the comparison of two ages, which are in the cache line that
//! it reads anyway.
//!
//! The lookup structures differ in what can change in place:
//!
//! | structure | add a rule | remove a rule |
//! |---|---|---|
//! | segment of a tuple | in place, until it is full | in place |
//! | compiled set | never: rules are added to tuples and merged later | in place |
//!
//! [`View`]: crate::View
//!
//! ```
//! use base::{Instant, TableId};
//! use fastpath::{Classifier, LookupProbe, View};
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline, Rule};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! let mut add = |line: &str| -> View {
//!     let command = parse_flow_line(line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//!     classifier.publish(&pipeline)
//! };
//! let first = add("udp,tp_dst=53,actions=output:2");
//! let second = add("udp,tp_dst=54,actions=output:2");
//!
//! // Packets of both rules: the first view finds one rule, the second finds two.
//! let rules: Vec<&Rule> = pipeline.rules(TableId(0)).map(AsRef::as_ref).collect();
//! let hits = |view: &View| {
//!     let probe = LookupProbe::new(view, TableId(0), rules.iter().copied(), 1);
//!     probe.expect("the table has rules").run(0..1)
//! };
//! assert_eq!(hits(&first), LookupProbe::BATCH / 2);
//! assert_eq!(hits(&second), LookupProbe::BATCH);
//! ```

/// Number of a publication.
pub(crate) type Epoch = u64;
