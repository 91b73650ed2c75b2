//! Huge pages for the time of a measurement: DPDK uses them in production.
//!
//! Best effort: if the kernel has none, all devices are measured with ordinary pages.

use std::fs;
use std::path::Path;

use crate::shell::Shell;

/// The kernel's files with the numbers of reserved and free 2 MB pages.
const FOLDER: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// Huge pages that were added, and are released on drop, also after Ctrl-C.
pub(super) struct HugePages {
    /// Number of pages before.
    before: Option<u32>,
}

impl HugePages {
    /// Reserves `count` pages in addition to those in use.
    pub(super) fn reserve(shell: &Shell, count: u32) -> Self {
        let (Some(before), Some(free)) = (read("nr_hugepages"), read("free_hugepages")) else {
            return Self { before: None };
        };
        if free >= count || shell.interrupted() {
            return Self { before: None };
        }
        println!("bench: setting {count} huge pages of 2 MB apart, for as long as it takes");
        let wanted = before - free + count;
        // Files in the cache are scattered over the memory: then no page of 2 MB is left.
        let _ = fs::write("/proc/sys/vm/drop_caches", "1");
        let _ = fs::write("/proc/sys/vm/compact_memory", "1");
        let set = write(wanted);
        if !set || read("free_hugepages").is_none_or(|free| free < count) {
            println!("bench: the kernel has not so many: everybody has ordinary pages");
            write(before);
            return Self { before: None };
        }
        Self {
            before: Some(before),
        }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

fn read(name: &str) -> Option<u32> {
    let text = fs::read_to_string(Path::new(FOLDER).join(name)).ok()?;
    text.trim().parse().ok()
}

fn write(count: u32) -> bool {
    fs::write(Path::new(FOLDER).join("nr_hugepages"), count.to_string()).is_ok()
}
