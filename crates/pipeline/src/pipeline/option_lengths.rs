//! The lengths of mapped tunnel options in the actions of rules. The header of a field in an encoded
//! action has the length of the option, as in Open vSwitch. A mapping outlives the rules that use it.

use std::sync::Arc;

use flow::{
    Action, BundleAction, Extension, Instructions, Learn, LearnSource, LearnSpec, Multipath,
    SampleId, Subfield,
};

use super::tlv_map::TlvMap;

impl TlvMap {
    /// Returns the instructions with the length of the option in each subfield of one.
    pub(super) fn with_lengths(&self, instructions: &Instructions) -> Instructions {
        let measure = |list: &[Action]| list.iter().map(|action| self.measure(action)).collect();
        Instructions {
            apply: measure(&instructions.apply),
            write: measure(&instructions.write),
            ..instructions.clone()
        }
    }

    fn measure(&self, action: &Action) -> Action {
        match action {
            Action::Extended(extension) => Action::Extended(self.measure_extension(extension)),
            action => action.clone(),
        }
    }

    fn measure_extension(&self, extension: &Extension) -> Extension {
        match extension {
            Extension::Load { to, value } => Extension::Load {
                to: self.measure_part(*to),
                value: *value,
            },
            Extension::Move { from, to } => Extension::Move {
                from: self.measure_part(*from),
                to: self.measure_part(*to),
            },
            Extension::Push(from) => Extension::Push(self.measure_part(*from)),
            Extension::Pop(to) => Extension::Pop(self.measure_part(*to)),
            Extension::OutputReg { from, max_len } => Extension::OutputReg {
                from: self.measure_part(*from),
                max_len: *max_len,
            },
            Extension::CheckPacketLarger { bytes, to } => Extension::CheckPacketLarger {
                bytes: *bytes,
                to: self.measure_part(*to),
            },
            Extension::Multipath(multipath) => Extension::Multipath(Multipath {
                to: self.measure_part(multipath.to),
                ..*multipath
            }),
            Extension::Bundle(bundle) => Extension::Bundle(Arc::new(BundleAction {
                to: bundle.to.map(|to| self.measure_part(to)),
                ..(**bundle).clone()
            })),
            Extension::Learn(learn) => Extension::Learn(Arc::new(self.measure_learn(learn))),
            Extension::Sample(sample) => {
                let measure = |part| SampleId::Subfield(self.measure_part(part));
                Extension::Sample(sample.with_sources(measure))
            }
            Extension::Clone(inner) => {
                Extension::Clone(inner.iter().map(|action| self.measure(action)).collect())
            }
            extension => extension.clone(),
        }
    }

    fn measure_learn(&self, learn: &Learn) -> Learn {
        let source = |from: LearnSource| match from {
            LearnSource::Subfield(from) => LearnSource::Subfield(self.measure_part(from)),
            LearnSource::Value(value) => LearnSource::Value(value),
        };
        let specs = learn.specs.iter().map(|spec| match *spec {
            LearnSpec::Match { to, from } => LearnSpec::Match {
                to: self.measure_part(to),
                from: source(from),
            },
            LearnSpec::Load { to, from } => LearnSpec::Load {
                to: self.measure_part(to),
                from: source(from),
            },
            LearnSpec::Output(from) => LearnSpec::Output(self.measure_part(from)),
        });
        Learn {
            specs: specs.collect(),
            result: learn.result.map(|result| self.measure_part(result)),
            ..learn.clone()
        }
    }

    fn measure_part(&self, part: Subfield) -> Subfield {
        part.with_option_bytes(self.length_of(part.field()))
    }
}

#[cfg(test)]
mod tests {
    use base::Instant;
    use flow::text::parse_flow_line;
    use flow::{TlvCommand, TlvMapping, TlvTableMod};

    use super::*;
    use crate::limits::Limits;
    use crate::pipeline::Pipeline;

    #[test]
    fn rules_have_the_lengths_of_mapped_options() {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mapping = TlvMapping {
            class: 0xffff,
            kind: 0,
            length: 4,
            index: 0,
        };
        let change = TlvTableMod {
            command: TlvCommand::Add,
            mappings: vec![mapping],
        };
        pipeline.tlv_table_mod(&change).expect("it is free");
        let line = "actions=clone(move:tun_metadata0[0..31]->NXM_NX_REG0[])";
        let command = parse_flow_line(line).expect("it is valid");
        let changes = pipeline.flow_mod(&command, Instant::START);
        let changes = changes.expect("the option is mapped");
        let rule = changes.added.first().expect("it is added");
        let Some(Action::Extended(Extension::Clone(inner))) = rule.instructions.apply.first()
        else {
            panic!("{:?}", rule.instructions);
        };
        let Some(Action::Extended(Extension::Move { from, to })) = inner.first() else {
            panic!("{inner:?}");
        };
        assert_eq!((from.option_bytes(), to.option_bytes()), (Some(4), None));
    }
}
