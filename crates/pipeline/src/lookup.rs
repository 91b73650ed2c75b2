//! The lookup of a rule: by the interpreter, which searches a table in priority order, or by an
//! engine that finds the same rule faster.

use std::sync::Arc;

use base::TableId;
use flow::PipelineFields;
use packet::Headers;

use crate::pipeline::Pipeline;
use crate::rules::Rule;

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub enum LookupResult<'a> {
    /// The matching rule, or none.
    Rule(Option<&'a Rule>),
    /// The rule that matches after the conjunction with this id.
    Conjunction(&'a Rule, u32),
    /// The rule that matches among those that the engine knows, or none, and all others in lookup
    /// order: the interpreter searches these.
    Partial {
        /// The rule that the engine found.
        compiled: Option<&'a Rule>,
        /// The rules that the engine does not know.
        uncompiled: &'a [Arc<Rule>],
    },
    /// The engine cannot decide; the interpreter searches.
    Unknown,
}

/// Finds rules in the tables of a pipeline.
pub trait Lookup {
    /// Returns the rule of `table` that a packet with these headers matches: the first matching one
    /// of [`Pipeline::rules`].
    fn look_up(
        &self,
        table: TableId,
        headers: &Headers,
        registers: &PipelineFields,
    ) -> LookupResult<'_>;
}

/// No engine: the interpreter searches.
impl Lookup for () {
    fn look_up(&self, _: TableId, _: &Headers, _: &PipelineFields) -> LookupResult<'_> {
        LookupResult::Unknown
    }
}

/// A pipeline, and the engine that searches its tables.
#[derive(Clone, Copy)]
pub struct LookupTables<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The engine.
    pub lookup: &'a dyn Lookup,
}

impl<'a> From<&'a Pipeline> for LookupTables<'a> {
    fn from(pipeline: &'a Pipeline) -> Self {
        Self {
            pipeline,
            lookup: &(),
        }
    }
}
