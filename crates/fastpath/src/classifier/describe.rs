//! Description of the compiled tables for operators.

use std::sync::Arc;

use base::TableId;
use pipeline::Rule;

use super::merge_plan::PROBE_COST;
use super::{Classifier, ClassifierTable};

/// Forms, size and cost of one compiled table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// Number of the table.
    pub table: TableId,
    /// Forms of its rules, joined by `+`: `direct` (linear form), `exact` (one tuple), `tuples`
    /// (several), `prefix`, `bits` (bit vectors), `clauses` of conjunctions, and `list` of rules
    /// that the interpreter compares one by one; or `walk` if it scans all rules of the table.
    pub form: String,
    /// Number of rules.
    pub rules: usize,
    /// Size of the forms in bytes, without the rules, which the pipeline owns.
    pub bytes: usize,
    /// Greatest cost of a lookup in modelled instructions, or `None` if the interpreter compares
    /// rules.
    pub cost: Option<usize>,
    /// Reason for the form.
    pub why: String,
}

impl Classifier {
    /// Describes each table that has rules, as of the last publication.
    #[must_use]
    pub fn describe(&self) -> Vec<TableDescription> {
        let tables = self.tables.iter();
        tables.map(|(id, table)| table.describe(*id)).collect()
    }
}

impl Classifier {
    /// Returns the tables with rules that have no compiled form, and one of those rules each.
    pub fn uncompiled_rules(&self) -> impl Iterator<Item = (TableId, &Arc<Rule>)> {
        let tables = self.tables.iter();
        tables.filter_map(|(id, table)| Some((*id, table.uncompiled.example()?)))
    }
}

impl ClassifierTable {
    fn describe(&self, table: TableId) -> TableDescription {
        let of_tuples = match self.tuples.len() {
            0 => None,
            1 => Some(("exact", "one mask: one probe".to_owned())),
            many => Some(("tuples", format!("{many} masks: one probe for each"))),
        };
        let of_sets = self
            .compiled_sets
            .iter()
            .map(|compiled| compiled.describe());
        let clauses = match self.clauses {
            0 => None,
            some => Some((
                "clauses",
                format!("{some} conjunction clauses: one more lookup for each that holds"),
            )),
        };
        let uncompiled = self.uncompiled.example().map(|rule| {
            let (count, priority) = (self.uncompiled.len(), rule.priority());
            let matching = rule.matching();
            format!("{count} rules cannot be compiled, such as priority={priority},{matching}")
        });
        let has_uncompiled = uncompiled.is_some();
        let is_scanned = has_uncompiled && (self.uncompiled.cause_scan() || self.clauses > 0);
        let list = uncompiled.map(|why| ("list", why));
        let all = of_tuples.into_iter().chain(of_sets).chain(clauses);
        let (forms, reasons): (Vec<_>, Vec<_>) = all.chain(list).unzip();
        let costs = self.compiled_sets.iter().map(|compiled| compiled.cost());
        let cost = PROBE_COST * self.tuples.len() + costs.sum::<usize>();
        let bytes = self.compiled_sets.iter().map(|compiled| compiled.bytes());
        let bytes_of_tuples = self.tuples.values().map(|tuple| tuple.bytes());
        TableDescription {
            table,
            rules: self.rules() + self.uncompiled.len(),
            bytes: bytes.chain(bytes_of_tuples).sum(),
            cost: (!has_uncompiled).then_some(cost),
            form: match is_scanned {
                true => "walk".to_owned(),
                false => forms.join(" + "),
            },
            why: match (is_scanned, reasons.last()) {
                (true, Some(uncompiled)) => uncompiled.clone(),
                _ => reasons.join("; "),
            },
        }
    }
}
