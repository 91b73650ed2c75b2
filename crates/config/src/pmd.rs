//! The PMD threads of dummies: their cores, the assignment of receive queues, and its automatic
//! balance (ovs-vswitchd.conf.db(5), `other_config:pmd-*`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::ConfigError;

/// The limits of `pmd-auto-lb-rebal-interval`, in minutes.
const INTERVAL_MIN: u64 = 1;
const INTERVAL_MAX: u64 = 20_000;

/// The default thresholds, in percent.
const LOAD_THRESHOLD: u8 = 95;
const IMPROVEMENT_THRESHOLD: u8 = 25;

/// The limit of `pmd-maxsleep` and `pmd-sleep-max`, in microseconds.
const MAX_SLEEP: u64 = 10_000;

/// The maximum number of hexadecimal digits of a CPU mask.
const MASK_DIGITS_MAX: usize = 1024;

/// The maximum number of cores of `--dummy-numa`: each has a worker, and a port has a queue for
/// each worker.
const DUMMY_CORES_MAX: usize = 63;

/// The largest NUMA node of `--dummy-numa`.
const NODE_MAX: u32 = i32::MAX as u32;

/// The keys of `Open_vSwitch` `other_config` that [`PmdConfig`] reads.
pub const PMD_KEYS: [&str; 9] = [
    "pmd-auto-lb",
    "pmd-auto-lb-improvement-threshold",
    "pmd-auto-lb-load-threshold",
    "pmd-auto-lb-rebal-interval",
    "pmd-cpu-mask",
    "pmd-maxsleep",
    "pmd-rxq-assign",
    "pmd-rxq-isolate",
    "pmd-sleep-max",
];

/// The algorithm that assigns receive queues to PMD threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RxqAlgorithm {
    /// In turn.
    RoundRobin,
    /// By load, in turn and back.
    #[default]
    Cycles,
    /// By load, to the thread with the least.
    Group,
}

impl fmt::Display for RxqAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundRobin => "roundrobin",
            Self::Cycles => "cycles",
            Self::Group => "group",
        })
    }
}

/// The cores of a CPU mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuMask {
    /// The cores.
    pub cores: BTreeSet<usize>,
    /// Characters that are no hexadecimal digits; they count as zero.
    pub invalid: Vec<char>,
}

impl CpuMask {
    /// Parses hexadecimal digits, optionally after `0x`.
    fn parse(text: &str) -> Self {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let digits = digits.unwrap_or(text).chars().rev();
        let mut mask = Self::default();
        for (place, letter) in digits.take(MASK_DIGITS_MAX).enumerate() {
            match letter.to_digit(16) {
                Some(bits) => {
                    let cores = (0..4).filter(|bit| bits >> bit & 1 == 1);
                    mask.cores.extend(cores.map(|bit| place * 4 + bit));
                }
                None => mask.invalid.push(letter),
            }
        }
        mask
    }
}

/// The automatic balance of receive queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoBalance {
    /// True if it is enabled.
    pub is_enabled: bool,
    /// The interval, in minutes.
    pub interval_minutes: u64,
    /// The load of a thread, in percent, that triggers it.
    pub load_threshold: u8,
    /// The improvement of the variance, in percent, that another assignment must have.
    pub improvement_threshold: u8,
}

impl Default for AutoBalance {
    fn default() -> Self {
        Self {
            is_enabled: false,
            interval_minutes: INTERVAL_MIN,
            load_threshold: LOAD_THRESHOLD,
            improvement_threshold: IMPROVEMENT_THRESHOLD,
        }
    }
}

/// The configuration of PMD threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmdConfig {
    /// The cores; one per NUMA node if absent.
    pub cpu_mask: Option<CpuMask>,
    /// The algorithm.
    pub algorithm: RxqAlgorithm,
    /// True if the configured algorithm is unknown.
    pub is_algorithm_unknown: bool,
    /// True if a thread with a pinned queue gets no other queue.
    pub isolates: bool,
    /// True if the configuration wants no isolation, but the algorithm requires it.
    pub is_isolation_forced: bool,
    /// The automatic balance.
    pub auto_balance: AutoBalance,
    /// The maximum sleep of an idle thread, in microseconds.
    pub max_sleep_us: u64,
}

impl Default for PmdConfig {
    fn default() -> Self {
        Self::parse(&BTreeMap::new())
    }
}

impl PmdConfig {
    /// Reads the keys of `other_config`. As in Open vSwitch, an invalid value is the default.
    #[must_use]
    pub fn parse(keys: &BTreeMap<&str, &str>) -> Self {
        let text = |key: &str| keys.get(key).copied();
        let number = |key: &str| text(key).and_then(|text| text.trim().parse::<u64>().ok());
        let percent = |key: &str, default: u8| {
            let percent = number(key).filter(|percent| *percent <= 100);
            percent
                .and_then(|percent| u8::try_from(percent).ok())
                .unwrap_or(default)
        };
        let (algorithm, is_algorithm_unknown) = match text("pmd-rxq-assign") {
            None | Some("cycles") => (RxqAlgorithm::Cycles, false),
            Some("roundrobin") => (RxqAlgorithm::RoundRobin, false),
            Some("group") => (RxqAlgorithm::Group, false),
            Some(_) => (RxqAlgorithm::Cycles, true),
        };
        let wants_isolation = text("pmd-rxq-isolate") != Some("false");
        let is_isolation_forced = !wants_isolation && algorithm != RxqAlgorithm::Group;
        // Open vSwitch 3.2 renamed the key; its value may end with values of cores.
        let max_sleep = text("pmd-sleep-max").map(global_sleep);
        let max_sleep = max_sleep.unwrap_or_else(|| number("pmd-maxsleep"));
        let interval = number("pmd-auto-lb-rebal-interval");
        let interval = interval.filter(|interval| *interval <= INTERVAL_MAX);
        Self {
            cpu_mask: text("pmd-cpu-mask")
                .filter(|mask| !mask.is_empty())
                .map(CpuMask::parse),
            algorithm,
            is_algorithm_unknown,
            isolates: wants_isolation || is_isolation_forced,
            is_isolation_forced,
            auto_balance: AutoBalance {
                is_enabled: text("pmd-auto-lb") == Some("true"),
                interval_minutes: interval.unwrap_or(INTERVAL_MIN).max(INTERVAL_MIN),
                load_threshold: percent("pmd-auto-lb-load-threshold", LOAD_THRESHOLD),
                improvement_threshold: percent(
                    "pmd-auto-lb-improvement-threshold",
                    IMPROVEMENT_THRESHOLD,
                ),
            },
            max_sleep_us: max_sleep.unwrap_or_default().min(MAX_SLEEP),
        }
    }
}

/// Returns the value for all cores in `pmd-sleep-max`: `50,8:0,9:0`.
fn global_sleep(text: &str) -> Option<u64> {
    let mut values = text.split(',');
    values.find_map(|value| value.trim().parse().ok())
}

/// The pinned receive queues of a port (`other_config:pmd-rxq-affinity`): the core of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RxqAffinity(pub BTreeMap<usize, usize>);

impl FromStr for RxqAffinity {
    type Err = ConfigError;

    /// Parses `QUEUE:CORE[,QUEUE:CORE]..`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let words = text.split([',', ' ', '\t', '\n', '\r']);
        let words = words.filter(|word| !word.is_empty());
        let pairs = words.map(|word| {
            let (queue, core) = word.split_once([':', '='])?;
            Some((queue.parse().ok()?, core.parse().ok()?))
        });
        let pairs: Option<_> = pairs.collect();
        pairs.map(Self).ok_or_else(|| {
            let problem = format!("'{text}' is no list of QUEUE:CORE");
            ConfigError::new("other_config:pmd-rxq-affinity", problem)
        })
    }
}

/// The cores that the switch pretends to have, for tests (`--dummy-numa`): the NUMA node of each
/// core; a core may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DummyCores(pub Vec<Option<u32>>);

impl FromStr for DummyCores {
    type Err = ConfigError;

    /// Parses comma-separated NUMA nodes; -1 is an absent core.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError::new("--dummy-numa", problem);
        let node = |word: &str| match word.trim() {
            "-1" => Ok(None),
            word => word
                .parse()
                .ok()
                .filter(|node| *node <= NODE_MAX)
                .map(Some)
                .ok_or_else(|| {
                    wrong(format!(
                        "'{word}' is no NUMA node: use a list as in 0,0,1,1"
                    ))
                }),
        };
        let nodes = text.split(',').map(node).collect::<Result<Vec<_>, _>>()?;
        if nodes.len() > DUMMY_CORES_MAX {
            return Err(wrong(format!("more than {DUMMY_CORES_MAX} cores")));
        }
        Ok(Self(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&'static str, &'static str)]) -> PmdConfig {
        PmdConfig::parse(&pairs.iter().copied().collect())
    }

    #[test]
    fn cpu_mask_names_cores_from_its_end() {
        let cores = |text| CpuMask::parse(text).cores.into_iter().collect::<Vec<_>>();
        assert_eq!(cores("0x3"), [0, 1]);
        assert_eq!(cores("7e"), [1, 2, 3, 4, 5, 6]);
        assert_eq!(cores("0X1fe"), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(CpuMask::parse("1g").invalid, ['g']);
        assert_eq!(cores("1g"), [4]);
    }

    #[test]
    fn pmd_config_has_defaults_for_invalid_values() {
        assert_eq!(parse(&[]), PmdConfig::default());
        assert_eq!(parse(&[("pmd-cpu-mask", "")]), PmdConfig::default());
        for text in ["0", "20001", "-1", "x"] {
            let config = parse(&[("pmd-auto-lb-rebal-interval", text)]);
            assert_eq!(config.auto_balance.interval_minutes, 1, "{text}");
        }
        for text in ["-1", "101", "x"] {
            let config = parse(&[
                ("pmd-auto-lb-load-threshold", text),
                ("pmd-auto-lb-improvement-threshold", text),
            ]);
            assert_eq!(config, PmdConfig::default(), "{text}");
        }
        assert_eq!(parse(&[("pmd-maxsleep", "10001")]).max_sleep_us, 10_000);
        let both = parse(&[("pmd-maxsleep", "7"), ("pmd-sleep-max", "50,8:0,9:10")]);
        assert_eq!(both.max_sleep_us, 50);
        assert_eq!(parse(&[("pmd-sleep-max", "8:5")]).max_sleep_us, 0);
        let unknown = parse(&[("pmd-rxq-assign", "best")]);
        assert!(unknown.is_algorithm_unknown && unknown.algorithm == RxqAlgorithm::Cycles);
    }

    #[test]
    fn isolation_is_optional_for_algorithm_group_only() {
        let no = ("pmd-rxq-isolate", "false");
        let cycles = parse(&[no]);
        assert!(cycles.isolates && cycles.is_isolation_forced);
        let group = parse(&[no, ("pmd-rxq-assign", "group")]);
        assert!(!group.isolates && !group.is_isolation_forced);
    }

    #[test]
    fn rxq_affinity_is_a_list_of_queues_and_cores() {
        let parsed: RxqAffinity = "0:3, 1:7,2=2".parse().expect("a list");
        assert_eq!(parsed.0, BTreeMap::from([(0, 3), (1, 7), (2, 2)]));
        assert_eq!(
            "".parse::<RxqAffinity>().expect("empty"),
            RxqAffinity::default()
        );
        for text in ["0", "0:", ":1", "-1:1", "a:b"] {
            text.parse::<RxqAffinity>().expect_err(text);
        }
    }

    #[test]
    fn dummy_cores_are_a_list_of_nodes() {
        let parsed: DummyCores = "0,0,-1,8".parse().expect("a list");
        assert_eq!(parsed.0, [Some(0), Some(0), None, Some(8)]);
        for text in ["", "0,,1", "x", "-2", &"0,".repeat(64)] {
            text.parse::<DummyCores>().expect_err(text);
        }
    }
}
