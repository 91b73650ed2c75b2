//! Who finds the rule that a frame fits: the interpreter, by a walk along the
//! list, or somebody quicker who must find the same.

use base::TableId;
use flow::PipelineFields;
use packet::Headers;

use crate::pipeline::Pipeline;
use crate::rules::Rule;

/// What a lookup has found.
#[derive(Clone, Copy, Debug)]
pub enum LookupResult<'a> {
    /// The rule, or that there is none.
    Rule(Option<&'a Rule>),
    /// The rule that the conjunction of this id leads to.
    Conjunction(&'a Rule, u32),
    /// It cannot tell: the interpreter has to look itself.
    Unknown,
}

/// Finds rules in the tables of a pipeline.
pub trait Lookup {
    /// The rule of `table` that a frame with these headers fits, and what else is
    /// known of it: the one that a walk along [`Pipeline::rules`] meets first.
    fn look_up(
        &self,
        table: TableId,
        headers: &Headers,
        registers: &PipelineFields,
    ) -> LookupResult<'_>;
}

/// Nobody: the interpreter walks along the lists.
impl Lookup for () {
    fn look_up(&self, _: TableId, _: &Headers, _: &PipelineFields) -> LookupResult<'_> {
        LookupResult::Unknown
    }
}

/// What a frame is run through.
#[derive(Clone, Copy)]
pub struct LookupTables<'a> {
    /// The tables.
    pub pipeline: &'a Pipeline,
    /// Who looks into them.
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
