//! Faults of the device `impaired`, from a file:
//!
//! ```toml
//! seed = 7
//!
//! [forth]                  # from the client to the server; [back] is the other direction
//! delay_us = 2000
//! jitter_us = 100          # greatest additional delay, uniformly distributed
//! loss = 0.01              # probability for each frame,
//! duplication_every = 100  # or every n-th frame
//! change = 0.0             # modification of the last byte
//! reordering = 0.005
//! reordering_by_us = 500   # additional delay of reordered frames
//! rate_bits = 100000000    # bits per second of frames with their checksum
//! queue_frames = 100
//! ```

use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use testbed::{Chance, Faults, Impairments};

use super::strict::{self, BadDescription, KnownKeys};

const OF_A_WAY: KnownKeys = KnownKeys {
    keys: &[
        "delay_us",
        "jitter_us",
        "loss",
        "loss_every",
        "duplication",
        "duplication_every",
        "change",
        "change_every",
        "reordering",
        "reordering_every",
        "reordering_by_us",
        "rate_bits",
        "queue_frames",
    ],
    tables: &[],
};

const KNOWN: KnownKeys = KnownKeys {
    keys: &["seed"],
    tables: &[("forth", OF_A_WAY), ("back", OF_A_WAY)],
};

/// Greatest configured delay: no test waits for a frame this long.
const HOLD_MAX_US: u64 = 10_000_000;

/// Longest queue in frames; a longer one only adds delay.
const QUEUE_MAX: usize = 100_000;

/// Default length of the queue for a limited rate.
const QUEUE: usize = 100;

#[derive(Debug, Default, Deserialize)]
struct FaultsFile {
    seed: Option<u64>,
    #[serde(default)]
    forth: DirectionFaults,
    #[serde(default)]
    back: DirectionFaults,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DirectionFaults {
    delay_us: u64,
    jitter_us: u64,
    loss: Option<f64>,
    loss_every: Option<NonZeroU64>,
    duplication: Option<f64>,
    duplication_every: Option<NonZeroU64>,
    change: Option<f64>,
    change_every: Option<NonZeroU64>,
    reordering: Option<f64>,
    reordering_every: Option<NonZeroU64>,
    reordering_by_us: u64,
    rate_bits: Option<NonZeroU64>,
    queue_frames: Option<usize>,
}

/// Parses the text of `file`.
pub(super) fn parse(text: &str, file: &Path) -> Result<Impairments, BadDescription> {
    let bad = |problem: String| BadDescription::new(file, problem);
    let written: FaultsFile = strict::parse(text, file, KNOWN)?;
    Ok(Impairments {
        forth: faults("forth", &written.forth).map_err(bad)?,
        back: faults("back", &written.back).map_err(bad)?,
        seed: written.seed.unwrap_or(1),
    })
}

fn faults(name: &str, way: &DirectionFaults) -> Result<Faults, String> {
    let time = |key: &str, micros: u64| match micros <= HOLD_MAX_US {
        true => Ok(Duration::from_micros(micros)),
        false => Err(format!("{name}.{key}: at most {HOLD_MAX_US}")),
    };
    let chance = |key: &str, share: Option<f64>, every: Option<NonZeroU64>| match (share, every) {
        (None, None) => Ok(Chance::Never),
        (Some(share), None) if (0.0..=1.0).contains(&share) => Ok(Chance::Share(share)),
        (Some(_), None) => Err(format!("{name}.{key}: expected a share from 0 to 1")),
        (None, Some(every)) => Ok(Chance::Every(every)),
        (Some(_), Some(_)) => Err(format!("{name}.{key} and {key}_every exclude each other")),
    };
    let queue_frames = way.queue_frames.unwrap_or(QUEUE);
    if queue_frames > QUEUE_MAX {
        return Err(format!("{name}.queue_frames: at most {QUEUE_MAX}"));
    }
    let reordering = chance("reordering", way.reordering, way.reordering_every)?;
    if reordering != Chance::Never && way.reordering_by_us == 0 {
        let text = "how much longer those frames are held";
        return Err(format!(
            "{name}.reordering requires reordering_by_us: {text}"
        ));
    }
    Ok(Faults {
        delay: time("delay_us", way.delay_us)?,
        jitter: time("jitter_us", way.jitter_us)?,
        loss: chance("loss", way.loss, way.loss_every)?,
        duplication: chance("duplication", way.duplication, way.duplication_every)?,
        change: chance("change", way.change, way.change_every)?,
        reordering,
        reordering_by: time("reordering_by_us", way.reordering_by_us)?,
        rate_bits: way.rate_bits,
        queue_frames,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Impairments, String> {
        parse(text, Path::new("slow.toml")).map_err(|bad| bad.to_string())
    }

    #[test]
    fn faults_file_sets_the_given_faults_only() {
        let text = "seed = 7\n[forth]\ndelay_us = 2000\nloss = 0.01\nduplication_every = 100\n";
        let faults = read(text).unwrap();
        assert_eq!(faults.seed, 7);
        assert_eq!(faults.forth.delay, Duration::from_millis(2));
        assert_eq!(faults.forth.loss, Chance::Share(0.01));
        let every = Chance::Every(NonZeroU64::new(100).unwrap());
        assert_eq!(faults.forth.duplication, every);
        let nothing = Faults {
            queue_frames: QUEUE,
            ..Faults::default()
        };
        assert_eq!(faults.back, nothing);
    }

    #[test]
    fn invalid_fault_is_reported_with_its_position() {
        let error_of = |text: &str| read(text).unwrap_err();
        assert_eq!(
            error_of("[forth]\ndely_us = 1"),
            "slow.toml: unknown key 'forth.dely_us': did you mean forth.delay_us?"
        );
        assert_eq!(
            error_of("[forth]\nloss = 1.5"),
            "slow.toml: forth.loss: expected a share from 0 to 1"
        );
        assert!(error_of("[back]\nloss = 0.1\nloss_every = 2").contains("exclude each other"));
        assert!(error_of("[back]\ndelay_us = 99999999").contains("at most 10000000"));
        assert!(error_of("[back]\ndelay_us = -1").contains("line 2"));
        assert!(error_of("[back]\nreordering = 0.1").contains("reordering_by_us"));
        assert!(error_of("seed = ").starts_with("slow.toml: line 1"));
        assert!(error_of("forth = 3").contains("[forth] must be a table"));
    }
}
