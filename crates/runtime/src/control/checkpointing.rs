//! Checkpoints of the tables: written while the switch runs, restored by its successor after a crash.
//!
//! The control thread takes a snapshot, which costs a few pointers; another thread encodes and writes
//! it. The pause between two checkpoints grows with the time that one takes, so that they never need
//! more than a twentieth of a core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{DatapathId, Instant};
use l2::fdb::FdbView;
use openflow::{CheckpointBridge, CheckpointCounts, CheckpointWriter};
use pipeline::Pipeline;
use switch::bridge::{checkpoint_addresses, checkpoint_messages};

use super::Control;
use crate::checkpoint_file::CheckpointFile;
use crate::clock::Clock;

/// The minimum pause between two checkpoints, and before the first: a switch that crashes at once
/// writes none, and starts without one the next time.
const PAUSE_MIN: Duration = Duration::from_secs(2);

/// The pause in multiples of the time that the last checkpoint took.
const PAUSE_FACTOR: u32 = 20;

/// The checkpoints of the process.
#[derive(Default)]
pub(super) struct Checkpoints {
    file: Option<Arc<CheckpointFile>>,
    /// True after the first configuration. Until then the file may be that of another process: one
    /// that has the lock of the database.
    is_open: bool,
    /// True if there are changes since the last checkpoint.
    is_stale: bool,
    /// True from the start of a checkpoint until its end is noticed.
    is_writing: bool,
    /// The number of failures that have been noticed.
    failures: u64,
    /// The time of the next checkpoint, on the clock that is never stopped.
    next_at: Instant,
}

/// The tables of a bridge at one time.
struct BridgeSnapshot {
    name: String,
    datapath_id: DatapathId,
    pipeline: Pipeline,
    fdb: FdbView,
}

impl Checkpoints {
    /// Returns the checkpoints in this file.
    pub(super) fn new(file: Option<Arc<CheckpointFile>>, clock: Clock) -> Self {
        Self {
            file,
            is_open: false,
            is_stale: false,
            is_writing: false,
            failures: 0,
            next_at: clock.unwarped() + PAUSE_MIN,
        }
    }

    /// Returns the bridges of a process that crashed; at the first call only.
    fn load(&mut self) -> Vec<CheckpointBridge> {
        if std::mem::replace(&mut self.is_open, true) {
            return Vec::new();
        }
        let loaded = self.file.as_ref().map(|file| file.load());
        match loaded.transpose() {
            Ok(loaded) => loaded.flatten().unwrap_or_default().bridges,
            Err(error) => {
                tracing::warn!("the checkpoint is ignored: {error}");
                Vec::new()
            }
        }
    }

    /// Records a change of the tables.
    pub(super) const fn note_change(&mut self) {
        self.is_stale = true;
    }

    /// Returns the file if a checkpoint is due.
    fn due(&mut self, now: Instant) -> Option<Arc<CheckpointFile>> {
        let file = self.file.as_ref()?;
        if file.is_busy.load(Ordering::Acquire) {
            return None;
        }
        if std::mem::take(&mut self.is_writing) {
            self.next_at = now + (file.took() * PAUSE_FACTOR).max(PAUSE_MIN);
            // A failed checkpoint is repeated: the disk may have space by then.
            let (_, failures) = file.counts();
            self.is_stale |= std::mem::replace(&mut self.failures, failures) != failures;
        }
        if !self.is_stale || now < self.next_at {
            return None;
        }
        self.is_stale = false;
        self.is_writing = true;
        file.is_busy.store(true, Ordering::Release);
        Some(Arc::clone(file))
    }

    /// Removes the file at the orderly end.
    pub(super) fn close(&self) {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_open) {
            file.close();
        }
    }
}

impl Control {
    /// Restores the bridges of the first configuration from the checkpoint of a crashed process. With
    /// `flow-restore-wait`, another program restores the rules, and the checkpoint is dropped.
    pub(super) fn restore_checkpoint(&mut self, is_restored_by_others: bool) {
        let loaded = self.checkpoints.load();
        if loaded.is_empty() {
            return;
        }
        if is_restored_by_others {
            tracing::info!("the checkpoint is dropped: flow-restore-wait is set");
            return;
        }
        let now = self.now();
        for checkpoint in loaded {
            let name = checkpoint.name.clone();
            let Some((_, site)) = self.site_named(&name) else {
                continue;
            };
            if site.bridge.datapath_id() != checkpoint.datapath_id {
                tracing::warn!("{name}: the checkpoint has another datapath id and is dropped");
                continue;
            }
            let counts = site.bridge.restore(checkpoint, now);
            tracing::info!(
                "{name}: restored {} rules, groups, meters and TLV maps and {} addresses after a crash; {} refused",
                counts.restored,
                counts.addresses,
                counts.refused,
            );
        }
    }

    /// Writes a checkpoint in the background, if one is due.
    pub(super) fn write_checkpoint(&mut self) {
        // Until the first configuration, the tables are not those of the switch.
        if self.configuration.awaits_flows() || !self.checkpoints.is_open {
            return;
        }
        let now = self.tools.clock.unwarped();
        let Some(file) = self.checkpoints.due(now) else {
            return;
        };
        let snapshot = self.sites.values().map(|site| BridgeSnapshot {
            name: site.bridge.name().to_owned(),
            datapath_id: site.bridge.datapath_id(),
            pipeline: site.bridge.rules(),
            fdb: site.bridge.fdb().view(),
        });
        let snapshot: Vec<_> = snapshot.collect();
        let (now, clock) = (self.now(), self.tools.clock);
        let write = move || {
            let began = clock.unwarped();
            let (bytes, counts) = encode(&snapshot, now);
            report(file.replace(&bytes), counts, &file);
            drop(snapshot);
            file.set_took(clock.unwarped() - began);
            file.is_busy.store(false, Ordering::Release);
        };
        drop(self.tools.runtime.spawn_blocking(write));
    }
}

fn encode(bridges: &[BridgeSnapshot], now: Instant) -> (Vec<u8>, CheckpointCounts) {
    let mut writer = CheckpointWriter::default();
    for bridge in bridges {
        writer.begin_bridge(&bridge.name, bridge.datapath_id);
        checkpoint_messages(&bridge.pipeline, now).for_each(|message| writer.add_message(&message));
        checkpoint_addresses(&bridge.fdb).for_each(|entry| writer.add_address(entry));
    }
    writer.finish()
}

/// Logs a checkpoint. Failures may repeat every few seconds, so only each doubling is logged, and
/// incomplete ones only if the number of entries changes.
fn report(result: std::io::Result<()>, counts: CheckpointCounts, file: &CheckpointFile) {
    match result {
        Ok(()) => {
            let CheckpointCounts { lossy, omitted, .. } = counts;
            if file.note_incomplete(lossy + omitted) && lossy + omitted > 0 {
                tracing::info!(
                    lossy,
                    omitted,
                    "the checkpoint cannot have all entries as they are"
                );
            }
            tracing::debug!(?counts, "checkpoint written");
        }
        Err(error) => {
            let (_, failed) = file.counts();
            if failed.is_power_of_two() {
                tracing::warn!(%error, failed, "cannot write the checkpoint");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_written_after_changes_with_pauses() {
        let path = std::env::temp_dir().join("comporta-absent/checkpoint");
        let mut checkpoints = Checkpoints {
            file: Some(Arc::new(CheckpointFile::new(path))),
            ..Checkpoints::default()
        };
        let at = Instant::from_secs;
        checkpoints.next_at = at(2);
        assert!(checkpoints.due(at(3)).is_none(), "no change");
        checkpoints.note_change();
        assert!(checkpoints.due(at(1)).is_none(), "too early");
        let file = checkpoints.due(at(3)).expect("due");
        checkpoints.note_change();
        assert!(checkpoints.due(at(5)).is_none(), "in progress");
        file.set_took(Duration::from_secs(2));
        file.is_busy.store(false, Ordering::Release);
        // It took two seconds: the pause is forty.
        assert!(checkpoints.due(at(5)).is_none());
        assert!(checkpoints.due(at(44)).is_none());
        let file = checkpoints.due(at(45)).expect("due");
        // A failure is repeated without another change.
        file.replace(b"").expect_err("the directory is absent");
        file.is_busy.store(false, Ordering::Release);
        assert!(checkpoints.due(at(46)).is_none());
        assert!(checkpoints.due(at(86)).is_some());
    }
}
