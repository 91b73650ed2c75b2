//! The tables of a bridge, their compiled form, and the record of their changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use conntrack::Conntrack;
use fastpath::Classifier;
use flow::{Field, FlowMod, Refusal};
use openflow::{ConntrackFlush, Message};
use pipeline::{Changes, FragmentStore, LearnRequest, Limits, Pipeline};

use base::{Instant, TableId};

use super::Bridge;
use super::compaction::CompactionTimer;
use super::notifications::PendingNotifications;
use super::publication::PublicationState;
use crate::connection_filter::ConnectionFilter;
use crate::monitors::Author;

/// The tables and their compiled form.
pub(super) struct BridgeTables {
    pub(super) pipeline: Pipeline,
    /// The compiled tables of `pipeline`.
    pub(super) compiled: Classifier,
    /// The pending compaction of the compiled tables.
    pub(super) compaction: Option<CompactionTimer>,
    /// A buffer for the changes of the next flow-mod.
    changes: Box<Changes>,
    /// Number of learn requests that were refused.
    learn_refused: u64,
    /// The tables that the log has reported as slow.
    slow: BTreeSet<TableId>,
    /// The configured prefix fields of megaflows.
    pub(super) prefixes: BTreeMap<TableId, Vec<Field>>,
}

/// The recipients of changes: the compiled tables, flow monitors, and the next publication.
struct ChangeRecorder<'a> {
    pipeline: &'a mut Pipeline,
    compiled: &'a mut Classifier,
    notifications: &'a mut PendingNotifications,
    publication: &'a mut PublicationState,
}

impl BridgeTables {
    /// Returns empty tables in which this number of threads count.
    pub(super) fn new(writers: usize) -> Self {
        Self {
            pipeline: Pipeline::new(Limits::default(), writers),
            compiled: Classifier::new(),
            compaction: None,
            changes: Box::default(),
            learn_refused: 0,
            slow: BTreeSet::new(),
            prefixes: BTreeMap::new(),
        }
    }
}

impl BridgeTables {
    /// Logs each table that becomes slow because a rule has no compiled form, once until it is fast
    /// again.
    pub(super) fn report_slow_tables(&mut self, bridge: &str) {
        let slow: Vec<_> = self.compiled.uncompiled_rules().collect();
        if slow.is_empty() && self.slow.is_empty() {
            return;
        }
        let is_new = |id: &TableId| !self.slow.contains(id);
        for (id, rule) in slow.iter().filter(|(id, _)| is_new(id)) {
            tracing::info!(
                bridge,
                table = id.0,
                priority = rule.priority(),
                rule = %rule.matching(),
                "rule without a compiled form makes its table slow"
            );
        }
        self.slow = slow.into_iter().map(|(id, _)| id).collect();
    }
}

impl ChangeRecorder<'_> {
    /// Records changes of the tables and their author.
    fn record(self, changes: &mut Changes, by: Option<Author>) {
        self.publication.request();
        self.notifications.record_changes(changes, by);
        let vacancy_events = self.pipeline.take_vacancy_events();
        self.notifications.record_vacancy(vacancy_events);
        self.compiled.take_changes(changes);
        if !changes.removed.is_empty() {
            let removals = std::mem::take(&mut changes.removed);
            self.publication.queue_removals(removals);
        }
    }
}

impl Bridge {
    /// Sets the connection tracker that the action `ct` uses. Bridges of a datapath share it.
    pub fn set_tracker(&mut self, tracker: Arc<Conntrack>) {
        self.tables.pipeline.set_tracker(tracker);
        self.publication.request();
    }

    /// Sets the store of fragments that the action `ct` holds. Bridges of a datapath share it.
    pub fn set_fragment_store(&mut self, store: Arc<FragmentStore>) {
        self.tables.pipeline.set_fragment_store(store);
        self.publication.request();
    }

    /// Removes connections from the tracker (`NXT_CT_FLUSH_ZONE`, `NXT_CT_FLUSH`). As in Open
    /// vSwitch, a tuple without a connection is no error. Workers wait for at most 64 connections
    /// at a time.
    pub(super) fn flush_connections(&self, message: &Message, now: Instant) {
        let request = match message {
            Message::FlushZone(zone) => ConntrackFlush {
                zone: Some(*zone),
                ..ConntrackFlush::default()
            },
            Message::FlushConnections(request) => *request,
            _ => return,
        };
        log_flush(self.name(), &request);
        let Some(tracker) = self.tables.pipeline.tracker() else {
            return;
        };
        let removed = ConnectionFilter::new(&request).flush(tracker, now);
        tracing::debug!(bridge = self.name(), ?removed, "flushed connections");
    }

    pub(super) fn do_flow_mod(
        &mut self,
        command: &FlowMod,
        by: Option<Author>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let BridgeTables {
            pipeline,
            compiled,
            changes,
            ..
        } = &mut self.tables;
        pipeline.flow_mod_into(command, now, changes)?;
        let recorder = ChangeRecorder {
            pipeline,
            compiled,
            notifications: &mut self.notifications,
            publication: &mut self.publication,
        };
        recorder.record(changes, by);
        changes.deferred_refusal.take().map_or(Ok(()), Err)
    }

    /// Processes changes of the tables and their author.
    pub(super) fn note(&mut self, changes: &mut Changes, by: Option<Author>) {
        let recorder = ChangeRecorder {
            pipeline: &mut self.tables.pipeline,
            compiled: &mut self.tables.compiled,
            notifications: &mut self.notifications,
            publication: &mut self.publication,
        };
        recorder.record(changes, by);
    }

    /// Installs the rule that a frame learned. An error is only counted and logged, because no peer
    /// requested the rule.
    pub fn handle_learned(&mut self, learned: &LearnRequest, now: Instant) {
        match self.tables.pipeline.learn(learned, now) {
            Ok(mut changes) => self.note(&mut changes, None),
            Err(refusal) => {
                self.tables.learn_refused += 1;
                // Frames may fail by the million, so only each doubling is logged.
                if self.tables.learn_refused.is_power_of_two() {
                    let (bridge, refused) = (self.name(), self.tables.learn_refused);
                    tracing::warn!(bridge, refused, %refusal, "cannot install a learned rule");
                }
            }
        }
    }

    /// Returns the number of rules that frames could not learn, for example because a table was
    /// full.
    pub const fn learn_refused(&self) -> u64 {
        self.tables.learn_refused
    }
}

/// Logs a request to flush connections, in the words of Open vSwitch.
fn log_flush(bridge: &str, flush: &ConntrackFlush) {
    let filter = ConnectionFilter::new(flush);
    match (flush.zone, filter.is_without_tuples()) {
        (None, true) => tracing::debug!(target: "ct_dpif", bridge, "ct_flush: <all>"),
        (Some(zone), true) => tracing::debug!(target: "ct_dpif", bridge, "ct_flush: zone {zone}"),
        (zone, false) => {
            let zone = zone.unwrap_or(0);
            tracing::debug!(target: "ct_dpif", bridge, "ct_flush: zone={zone} {flush}");
        }
    }
}
