//! Resource usage of this process (proc(5)).

use std::fs;

use control_api::telemetry::ProcessTelemetry;

/// Returns the current usage; a value that cannot be read is zero.
pub(crate) fn telemetry() -> ProcessTelemetry {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let open_files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    ProcessTelemetry {
        open_files: open_files as u64,
        ..parse_status(&status)
    }
}

/// Parses `/proc/PID/status`.
fn parse_status(status: &str) -> ProcessTelemetry {
    /// The unit of memory sizes in the file.
    const KILOBYTE: u64 = 1024;
    let number = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    ProcessTelemetry {
        resident_bytes: number("VmRSS:").unwrap_or(0) * KILOBYTE,
        virtual_bytes: number("VmSize:").unwrap_or(0) * KILOBYTE,
        threads: number("Threads:").unwrap_or(0),
        open_files: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_status_is_parsed_with_zero_for_missing_values() {
        let status = "Name:\tcomporta\nVmSize:\t  2048 kB\nVmRSS:\t  1000 kB\nThreads:\t4\n";
        let usage = parse_status(status);
        assert_eq!(
            (usage.virtual_bytes, usage.resident_bytes),
            (2 << 20, 1_024_000)
        );
        assert_eq!(usage.threads, 4);
        assert_eq!(parse_status("VmRSS:\tmany\n"), ProcessTelemetry::default());
        assert!(telemetry().resident_bytes > 0 && telemetry().open_files > 2);
    }
}
