//! The tables of a bridge as the messages that build them, and their restoration after a crash.

use std::time::Duration;

use base::{GroupId, Instant, MeterId, TableId};
use flow::{
    Consistency, FlowFlags, FlowMod, FlowModCommand, FlowStats, GroupDesc, GroupMod,
    GroupModCommand, MeterConfig, MeterMod, MeterModCommand, Refusal, TlvCommand, TlvTableMod,
};
use l2::fdb::{FdbKey, FdbView};
use openflow::{CheckpointAddress, CheckpointBridge, Message};
use pipeline::Pipeline;

use super::Bridge;

/// The time after which a restored standalone bridge without its controllers forwards as a learning
/// switch: three times the default probe interval, as in Open vSwitch. Controllers that are there
/// connect within a few seconds.
const CONTROLLER_WAIT: Duration = Duration::from_secs(15);

/// The result of a restoration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreCounts {
    /// Restored TLV maps, meters, groups and rules.
    pub restored: usize,
    /// Messages that the tables refused.
    pub refused: usize,
    /// Restored entries of the forwarding database.
    pub addresses: usize,
}

/// Returns the messages that build the tables of `pipeline`, in the order in which they must be
/// executed. Counters and ages are not part of them.
pub fn checkpoint_messages(pipeline: &Pipeline, now: Instant) -> impl Iterator<Item = Message> {
    let mappings = pipeline.tlv_table().mappings;
    let is_mapped = !mappings.is_empty();
    let tlv = Message::TlvTableMod(TlvTableMod {
        command: TlvCommand::Add,
        mappings,
    });
    let tlv = is_mapped.then_some(tlv);
    let meters = pipeline.meter_configs(MeterId::ALL).unwrap_or_default();
    let groups = pipeline.group_descs(GroupId::ALL);
    let rules = pipeline.rules(TableId::ALL);
    tlv.into_iter()
        .chain(meters.into_iter().map(meter_message))
        .chain(groups.map(group_message))
        .chain(rules.map(move |rule| rule_message(rule.statistics(now))))
}

/// Returns the entries of a forwarding database, least recently used first, so that they have the
/// same order after they are learned again.
pub fn checkpoint_addresses(fdb: &FdbView) -> impl Iterator<Item = CheckpointAddress> {
    let entries = fdb.by_activity().into_iter();
    entries.map(|(address, entry)| CheckpointAddress {
        vid: address.vid,
        mac: address.mac,
        port: entry.port(),
        is_static: entry.is_static(),
    })
}

fn meter_message(meter: MeterConfig) -> Message {
    Message::MeterMod(MeterMod {
        command: MeterModCommand::Add,
        flags: meter.flags,
        meter: meter.meter,
        bands: meter.bands,
    })
}

fn group_message(group: GroupDesc) -> Message {
    Message::GroupMod(GroupMod {
        command: GroupModCommand::Add,
        kind: group.kind,
        group: group.group,
        command_bucket: base::BucketId::ALL,
        selection: group.selection,
        buckets: group.buckets,
    })
}

fn rule_message(rule: FlowStats) -> Message {
    Message::FlowMod(FlowMod {
        table: rule.table,
        cookie: rule.cookie,
        idle_timeout_s: rule.idle_timeout_s,
        hard_timeout_s: rule.hard_timeout_s,
        importance: rule.importance,
        flags: rule.flags,
        ..FlowMod::new(
            FlowModCommand::Add,
            rule.priority,
            rule.matching,
            rule.instructions,
        )
    })
}

impl Bridge {
    /// Replaces the tables by those of a checkpoint, and adds its forwarding database. Timeouts
    /// start anew. Messages that the tables refuse are counted; the others take effect.
    pub fn restore(&mut self, checkpoint: CheckpointBridge, now: Instant) -> RestoreCounts {
        let mut counts = RestoreCounts::default();
        self.clear_tables(now);
        for message in checkpoint.messages {
            match self.restore_message(message, now) {
                Ok(()) => counts.restored += 1,
                Err(refusal) => {
                    counts.refused += 1;
                    let bridge = self.name();
                    tracing::debug!(bridge, %refusal, "an entry of the checkpoint is refused");
                }
            }
        }
        for entry in checkpoint.addresses {
            let address = FdbKey {
                vid: entry.vid,
                mac: entry.mac,
            };
            if !self.ports.contains_key(&entry.port) {
                continue;
            }
            if entry.is_static {
                counts.addresses +=
                    usize::from(self.add_static_entry(address, entry.port, now).is_ok());
            } else {
                self.handle_address(address, entry.port, now);
                counts.addresses += 1;
            }
        }
        self.restored_until = Some(now + CONTROLLER_WAIT);
        self.update_mode();
        counts
    }

    fn restore_message(&mut self, message: Message, now: Instant) -> Result<(), Refusal> {
        match message {
            Message::FlowMod(mut command) => {
                // Rules of OpenFlow 1.0 may have actions without their prerequisites, and rules that
                // were accepted do not overlap.
                command.consistency = Consistency::Waived;
                command.flags.0 &= !FlowFlags::CHECK_OVERLAP.0;
                self.do_flow_mod(&command, None, now)
            }
            Message::GroupMod(command) => {
                let mut changes = self.tables.pipeline.group_mod(&command, now)?;
                self.note(&mut changes, None);
                Ok(())
            }
            Message::MeterMod(command) => {
                let mut changes = self.tables.pipeline.meter_mod(&command, now)?;
                self.note(&mut changes, None);
                Ok(())
            }
            Message::TlvTableMod(change) => self.tables.pipeline.tlv_table_mod(&change),
            _ => Err(Refusal::RequestBadType),
        }
    }
}

#[cfg(test)]
mod tests {
    use config::FailMode;
    use flow::text::{parse_flow_line, parse_group_line, parse_meter_line};
    use openflow::{Checkpoint, CheckpointWriter, WallTime};
    use packet::MacAddr;

    use super::*;
    use crate::bridge::Identity;
    use base::{DatapathId, PortNo};

    fn bridge() -> Bridge {
        let identity = Identity {
            name: "br0".to_owned(),
            datapath_id: DatapathId(1),
            fail_mode: FailMode::Standalone,
            started: WallTime(Duration::from_secs(1)),
        };
        Bridge::new(identity, false, 2, Instant::START)
    }

    /// Writes the tables of a bridge and parses them again.
    fn saved(bridge: &Bridge) -> CheckpointBridge {
        let mut writer = CheckpointWriter::default();
        writer.begin_bridge(bridge.name(), bridge.datapath_id());
        let pipeline = bridge.rules();
        checkpoint_messages(&pipeline, Instant::START)
            .for_each(|message| writer.add_message(&message));
        checkpoint_addresses(&bridge.fdb().view()).for_each(|entry| writer.add_address(entry));
        let (file, counts) = writer.finish();
        assert_eq!((counts.lossy, counts.omitted), (0, 0));
        let mut checkpoint = Checkpoint::parse(&file).expect("a whole file");
        checkpoint.bridges.remove(0)
    }

    /// Returns the rules, groups and meters.
    fn contents(bridge: &Bridge) -> Vec<Message> {
        checkpoint_messages(&bridge.rules(), Instant::START).collect()
    }

    #[test]
    fn restored_bridge_has_the_same_tables() {
        let mut before = bridge();
        let lines = [
            Message::MeterMod(
                parse_meter_line("meter=1,pktps,bands=type=drop,rate=10").expect("legal"),
            ),
            // The first group names one that does not exist yet.
            Message::GroupMod(
                parse_group_line("group_id=1,type=all,bucket=bucket_id:0,group:2").expect("legal"),
            ),
            Message::GroupMod(
                parse_group_line("group_id=2,type=all,bucket=bucket_id:0,output:2").expect("legal"),
            ),
            Message::FlowMod(
                parse_flow_line("tcp,cookie=5,check_overlap,actions=group:1").expect("legal"),
            ),
            Message::FlowMod(parse_flow_line("table=9,udp,actions=output:1").expect("legal")),
        ];
        for message in lines {
            let text = format!("{message:?}");
            before
                .restore_message(message, Instant::START)
                .expect(&text);
        }
        let mut after = bridge();
        let counts = after.restore(saved(&before), Instant::from_secs(1));
        assert_eq!(counts.refused, 0);
        assert_eq!(counts.restored, contents(&before).len());
        let named = |message: &Message| matches!(message, Message::FlowMod(_));
        let (before, after) = (contents(&before), contents(&after));
        assert_eq!(before.iter().filter(|message| named(message)).count(), 3);
        assert_eq!(before.len(), after.len());
    }

    #[test]
    fn restoration_removes_the_default_rule_if_the_checkpoint_has_none() {
        let mut before = bridge();
        before.clear_tables(Instant::START);
        let mut after = bridge();
        assert_eq!(after.rules().len(), 1);
        after.restore(saved(&before), Instant::START);
        assert!(after.rules().is_empty());
    }

    #[test]
    fn restored_standalone_bridge_keeps_to_its_rules_for_a_while() {
        let checkpoint = saved(&bridge());
        let mut after = bridge();
        after.handle_controllers(true, Instant::START);
        assert!(after.rules().is_standalone());
        after.restore(checkpoint, Instant::from_secs(1));
        assert!(!after.rules().is_standalone());
        let end = Instant::from_secs(16);
        assert!(after.next_timeout().is_some_and(|due| due <= end));
        after.handle_timeout(Instant::from_secs(15));
        assert!(!after.rules().is_standalone());
        after.handle_timeout(end);
        assert!(after.rules().is_standalone());
    }

    #[test]
    fn refused_entries_and_addresses_of_absent_ports_are_skipped() {
        let mut checkpoint = saved(&bridge());
        let rule = parse_flow_line("actions=group:77").expect("legal");
        checkpoint.messages.push(Message::FlowMod(rule));
        checkpoint.addresses.push(CheckpointAddress {
            vid: 0,
            mac: MacAddr([2; 6]),
            port: PortNo(77),
            is_static: false,
        });
        let counts = bridge().restore(checkpoint, Instant::START);
        let expected = RestoreCounts {
            restored: 1,
            refused: 1,
            addresses: 0,
        };
        assert_eq!(counts, expected);
    }
}
