//! What the tables look like inside, for people who ask.

use base::TableId;

use super::forms::PROBE;
use super::{Classifier, Table};

/// How a table finds its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// The table.
    pub table: TableId,
    /// The forms that its rules have: `direct`, `exact`, `tuples`, `bits`, and `clauses` of
    /// conjunctions, with a plus between; or `walk` if the interpreter goes along the list.
    pub form: String,
    /// How many rules there are.
    pub rules: usize,
    /// What the forms take, in bytes; the rules themselves are the pipeline's.
    pub bytes: usize,
    /// What a lookup takes at most, in modelled instructions; none for a walk, which takes
    /// what the list is long.
    pub cost: Option<usize>,
    /// Why it has that form.
    pub why: String,
}

impl Classifier {
    /// What each table that has rules looks like, as it was published last.
    #[must_use]
    pub fn describe(&self) -> Vec<TableDescription> {
        let tables = self.tables.iter();
        tables.map(|(id, table)| table.describe(*id)).collect()
    }
}

impl Table {
    fn describe(&self, table: TableId) -> TableDescription {
        let probes = match self.tuples.len() {
            0 => None,
            1 => Some(("exact", "one shape: one probe".to_owned())),
            many => Some(("tuples", format!("{many} shapes: a probe each"))),
        };
        let bases = self.bases.iter().map(|base| base.describe());
        let clauses = match self.clauses {
            0 => None,
            some => Some((
                "clauses",
                format!("{some} clauses of conjunctions: as often as one holds"),
            )),
        };
        let all = probes.into_iter().chain(bases).chain(clauses);
        let (forms, reasons): (Vec<_>, Vec<_>) = all.unzip();
        let walked = match self.outside {
            0 => None,
            some => Some(format!("{some} rules that no form takes")),
        };
        let costs = self.bases.iter().map(|base| base.cost());
        let cost = PROBE * self.tuples.len() + costs.sum::<usize>();
        let bytes = self.bases.iter().map(|base| base.bytes());
        let of_tuples = self.tuples.values().map(|tuple| tuple.bytes());
        TableDescription {
            table,
            rules: self.rules() + self.outside,
            bytes: bytes.chain(of_tuples).sum(),
            cost: walked.is_none().then_some(cost),
            form: match walked {
                Some(_) => "walk".to_owned(),
                None => forms.join(" + "),
            },
            why: walked.unwrap_or_else(|| reasons.join("; ")),
        }
    }
}
