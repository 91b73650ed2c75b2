//! State that the lookup and the execution of a batch share: the worker's memory, the context of
//! the batch, its frames, statistics and egress checks.

use base::{Instant, PortNo, TableId};
use flow::{FlowKey, PipelineFields};
use packet::{Depth, FragmentPorts, Frame, Headers};
use pipeline::{DropReason, Interpreter, Pipeline, PortView, Rule, Totals, Verdict};

use crate::action_program::SlowPathReason;
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::batch_stats::{BatchStats, TableBatchStats};
use crate::classifier::{LookupScratch, SingleForm, View};
use crate::egress_cache::EgressCache;
use crate::flow_cache::FlowCache;
use crate::match_result::{MatchResult, look_up};
use crate::packed_key::{PackedKey, UncommonFrame};
use crate::walk_cache::WalkCache;

/// Common properties of the frames of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchContext<'a> {
    /// Tables, groups, meters and ports.
    pub pipeline: &'a Pipeline,
    /// The same tables, compiled.
    pub view: &'a View,
    /// Ingress port.
    pub in_port: PortNo,
    /// Time of arrival.
    pub now: Instant,
}

/// Memory of a worker that is used for one batch after the other.
#[derive(Debug)]
pub(crate) struct WorkerMemory {
    /// Index of the worker's cell in every counter.
    pub(crate) writer: usize,
    pub(crate) interpreter: Interpreter,
    /// Memory for lookups of the interpreter.
    pub(crate) scratch: LookupScratch,
    /// Keys of the packets of the lookup batch.
    pub(crate) keys: Box<[PackedKey; LOOKUP_BATCH]>,
    /// All fields of a packet, for groups that select by them.
    pub(crate) group_key: Box<FlowKey>,
    /// Packets whose pipeline fields rules have written.
    pub(crate) written: BatchMask,
    /// Pipeline fields of the current packet for consumers that need all of them; otherwise those
    /// of a packet at ingress.
    pub(crate) pipeline_fields: PipelineFields,
    pub(crate) verdict: Verdict,
    pub(crate) table_stats: TableBatchStats,
    pub(crate) flow_cache: FlowCache,
    pub(crate) walk_cache: WalkCache,
    /// Packets handled by the interpreter, by reason.
    pub(crate) slow_path_packets: [u64; SlowPathReason::ALL.len()],
}

impl WorkerMemory {
    pub(crate) fn new(writer: usize) -> Self {
        Self {
            writer,
            interpreter: Interpreter::new(writer),
            scratch: LookupScratch::new(),
            group_key: Box::new(FlowKey::new()),
            keys: Box::new(std::array::from_fn(|_| PackedKey::at_ingress())),
            written: BatchMask::EMPTY,
            pipeline_fields: PipelineFields::new(PortNo::ANY),
            verdict: Verdict::new(),
            table_stats: TableBatchStats::new(),
            flow_cache: FlowCache::new(writer),
            walk_cache: WalkCache::new(writer),
            slow_path_packets: [0; SlowPathReason::ALL.len()],
        }
    }

    pub(crate) const fn count_slow_path(&mut self, reason: SlowPathReason) {
        self.slow_path_packets[reason as usize] += 1;
    }
}

/// Properties of the ingress port, and how its frames are parsed.
#[derive(Debug)]
pub(crate) struct BatchIngress {
    /// Depth to which frames are parsed.
    pub(crate) depth: Depth,
    /// True if frames may be dropped or forwarded before the first lookup: by port state,
    /// fragment handling, or in standalone mode.
    pub(crate) is_filtered: bool,
    pub(crate) port: Option<PortView>,
}

/// State of a batch.
#[derive(Debug)]
pub(crate) struct BatchState<'a> {
    pub(crate) memory: &'a mut WorkerMemory,
    pub(crate) context: BatchContext<'a>,
    /// Pipeline fields of all frames at ingress, if any is set: those of a tunnel.
    pub(crate) ingress_fields: Option<&'a PipelineFields>,
    pub(crate) ingress: BatchIngress,
    pub(crate) stats: BatchStats<'a>,
    pub(crate) egress: EgressCache<'a>,
    pub(crate) frames: &'a mut [Frame],
}

impl<'a> BatchState<'a> {
    /// True if the ingress port may cause packet-ins by misses.
    pub(crate) fn reports_misses(&self) -> bool {
        self.ingress.port.is_none_or(|port| port.reports_misses())
    }

    /// True if the frames arrived with tunnel options.
    pub(crate) fn has_options(&self) -> bool {
        let fields = self.ingress_fields;
        fields.is_some_and(|fields| !fields.options.is_empty())
    }

    /// Counts packets that match a rule in a table.
    #[inline]
    pub(crate) fn count_match(&mut self, table: TableId, rule: &'a Rule, weight: Totals) {
        let tables = &mut self.memory.table_stats;
        self.stats.count_match(table, rule, weight, tables);
    }

    /// Parses a rewritten frame again, into the key at `index`.
    pub(crate) fn parse_again(
        &mut self,
        index: usize,
        frame: &Frame,
        in_port: PortNo,
    ) -> Result<(), DropReason> {
        let key = &mut self.memory.keys[index];
        let ports = self.context.pipeline.fragment_ports();
        parse(key, frame, in_port, (self.ingress.depth, ports))
    }

    /// Looks up the packet at `index` in a table.
    #[inline]
    pub(crate) fn look_up(&self, index: usize, table: TableId) -> MatchResult<'a> {
        let view = self.context.view;
        let key = &self.memory.keys[index];
        match view.table(table) {
            None => MatchResult::MISS,
            Some(table) => match table.single_form() {
                SingleForm::Linear(compiled, linear) => {
                    let rule = compiled.find_linear(linear, key, view.epoch());
                    MatchResult::Rule(rule.map(AsRef::as_ref))
                }
                _ => look_up(view, Some(table), key, self.has_options()),
            },
        }
    }
}

/// Pipeline fields of a packet at ingress.
#[inline]
pub(crate) fn fields_at_ingress(
    in_port: PortNo,
    tunnel: Option<&PipelineFields>,
) -> PipelineFields {
    match tunnel {
        None => PipelineFields::new(in_port),
        Some(tunnel) => PipelineFields {
            in_port,
            ..tunnel.clone()
        },
    }
}

/// Packets and bytes that a frame counts for.
#[inline]
pub(crate) fn weight_of(frame: &Frame) -> Totals {
    Totals {
        packets: frame.wire_frames(),
        bytes: frame.wire_bytes(),
    }
}

/// Parses the headers of a frame into a key.
#[inline]
fn parse(
    key: &mut PackedKey,
    frame: &Frame,
    in_port: PortNo,
    (depth, ports): (Depth, FragmentPorts),
) -> Result<(), DropReason> {
    match key.parse(frame, in_port, depth) {
        Ok(()) => Ok(()),
        Err(UncommonFrame) => parse_uncommon(key, frame, in_port, (depth, ports)),
    }
}

/// Parses the headers of any frame into a key.
pub(crate) fn parse_uncommon(
    key: &mut PackedKey,
    frame: &Frame,
    in_port: PortNo,
    (depth, ports): (Depth, FragmentPorts),
) -> Result<(), DropReason> {
    let headers = Headers::parse(frame, depth).map_err(DropReason::Malformed)?;
    let hidden = headers.for_lookup(ports);
    key.fill_headers(hidden.as_ref().unwrap_or(&headers), in_port);
    Ok(())
}
