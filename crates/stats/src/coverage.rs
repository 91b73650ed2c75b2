//! The coverage of the intervals, by simulation of packets with a known mean. `docs/measuring.md`
//! quotes these figures.
//!
//! Delays follow an AR(1) process with the coefficient 0.7, and each run has a level of its own, as
//! real runs have.

use base::SplitMix64;

use super::*;

const TRUTH: f64 = 100.0;
const MEMORY: f64 = 0.7;
const PACKETS: usize = 1_000;
const SIMULATIONS: usize = 2_000;

/// Returns the delays of one run around `level`.
fn packets(random: &mut SplitMix64, level: f64) -> Vec<f64> {
    let mut noise = random.normal() / (1.0 - MEMORY * MEMORY).sqrt();
    let mut next = || {
        noise = MEMORY * noise + random.normal();
        level + noise
    };
    (0..PACKETS).map(|_| next()).collect()
}

/// Returns the delays of a run with a random level.
fn run(random: &mut SplitMix64) -> Vec<f64> {
    let level = TRUTH + random.normal();
    packets(random, level)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the number of simulations whose interval holds the true value.
fn held(mut simulate: impl FnMut(u64) -> Interval) -> usize {
    let seeds = 0..SIMULATIONS as u64;
    let intervals = seeds.map(&mut simulate);
    intervals
        .filter(|interval| interval.low <= TRUTH && TRUTH <= interval.high)
        .count()
}

#[test]
fn interval_over_runs_covers_the_truth_and_one_over_packets_does_not() {
    let over_runs = held(|seed| {
        let mut random = SplitMix64::new(seed);
        let runs: Vec<f64> = (0..20).map(|_| mean(&run(&mut random))).collect();
        mean_interval(&runs, CONFIDENCE).unwrap()
    });
    assert!(
        (1_960..=1_990).contains(&over_runs),
        "{over_runs} of {SIMULATIONS}"
    );
    // One run, with its packets taken as independent, as published intervals often are.
    let over_packets = held(|seed| {
        let mut random = SplitMix64::new(seed);
        mean_interval(&run(&mut random), CONFIDENCE).unwrap()
    });
    assert!(
        (80..=220).contains(&over_packets),
        "{over_packets} of {SIMULATIONS}"
    );
}

#[test]
fn within_a_run_batches_and_blocks_hold_its_own_mean_and_packets_do_not() {
    let one = |seed| packets(&mut SplitMix64::new(seed), TRUTH);
    let naive = held(|seed| mean_interval(&one(seed), CONFIDENCE).unwrap());
    assert!((1_350..=1_550).contains(&naive), "{naive} of {SIMULATIONS}");
    let batches = held(|seed| batch_means_interval(&one(seed), CONFIDENCE).unwrap());
    assert!(
        (1_940..=1_985).contains(&batches),
        "{batches} of {SIMULATIONS}"
    );
    let blocks = held(|seed| block_bootstrap_interval(&one(seed), CONFIDENCE, seed).unwrap());
    assert!(
        (1_900..=1_980).contains(&blocks),
        "{blocks} of {SIMULATIONS}"
    );
}

#[test]
fn runs_of_one_device_differ_by_more_than_intervals_over_packets() {
    // The same device twice, each time with an interval over packets: the number of pairs that do
    // not overlap.
    let apart = (0..SIMULATIONS as u64).filter(|&seed| {
        let mut random = SplitMix64::new(seed);
        let [a, b] = [(); 2].map(|()| mean_interval(&run(&mut random), CONFIDENCE).unwrap());
        a.high < b.low || b.high < a.low
    });
    let apart = apart.count();
    assert!((1_700..=1_850).contains(&apart), "{apart} of {SIMULATIONS}");
}

#[test]
fn percentile_over_runs_covers_the_truth_and_one_over_packets_does_not() {
    let deviation = (1.0 - MEMORY * MEMORY).sqrt().recip();
    let quantile = |values: &mut [f64], share: f64| {
        let rank = bootstrap::whole(values.len() as f64 * share);
        *values.select_nth_unstable_by(rank, f64::total_cmp).1
    };
    let simulations = 400;
    let few = 100;
    let held = |seeds: u64, truth: f64, interval: &dyn Fn(&[Vec<f64>], u64) -> Interval| {
        let seeds = 0..seeds;
        let intervals = seeds.map(|seed| {
            let mut random = SplitMix64::new(seed);
            let runs: Vec<Vec<f64>> = (0..20).map(|_| run(&mut random)).collect();
            interval(&runs, seed)
        });
        let held = intervals.filter(|found| found.low <= truth && truth <= found.high);
        held.count()
    };
    let each = |runs: &[Vec<f64>]| -> Vec<f64> {
        let runs = runs.iter();
        runs.map(|run| quantile(&mut run.clone(), 0.9)).collect()
    };
    // 1.2816 standard deviations of packets above the run's own level, which is 100 on average.
    let truth = TRUTH + 1.281_552 * deviation;
    let student = held(simulations, truth, &|runs, _| {
        mean_interval(&each(runs), CONFIDENCE).unwrap()
    });
    assert!((390..=400).contains(&student), "{student} of {simulations}");
    let resampled = held(simulations, truth, &|runs, seed| {
        let mean_of = |drawn: &[&f64]| drawn.iter().copied().sum::<f64>() / drawn.len() as f64;
        bootstrap_runs(&each(runs), CONFIDENCE, seed, mean_of).unwrap()
    });
    assert!(
        (380..=398).contains(&resampled),
        "{resampled} of {simulations}"
    );
    // All packets of all runs together: their tail is that of the slowest runs, of which 20 hold
    // too few. Every twentieth packet, to save time.
    let truth = TRUTH + 2.326_348 * deviation.hypot(1.0);
    let heap = held(few, truth, &|runs, seed| {
        let thin = |run: &Vec<f64>| run.iter().copied().step_by(20).collect::<Vec<f64>>();
        let thinned: Vec<Vec<f64>> = runs.iter().map(thin).collect();
        let p99 = |drawn: &[&Vec<f64>]| {
            let mut all: Vec<f64> = drawn.iter().flat_map(|run| run.iter().copied()).collect();
            quantile(&mut all, 0.99)
        };
        bootstrap_runs(&thinned, CONFIDENCE, seed, p99).unwrap()
    });
    assert!((80..=94).contains(&heap), "{heap} of {few}");
}

#[test]
fn test_rarely_separates_equal_devices_and_separates_different_ones() {
    let compare = |seed: u64, factor: f64| {
        let mut random = SplitMix64::new(seed);
        let pairs: Vec<(f64, f64)> = (0..20)
            .map(|_| {
                // The common part of a round, and the part of each device.
                let round = 0.05 * random.normal();
                let mut own = || round + 0.01 * random.normal();
                (own(), own() + f64::ln(factor))
            })
            .collect();
        let contrast = paired_contrast(&pairs, CONFIDENCE).unwrap();
        verdict(&contrast.interval, Margin::of_ratio(0.02))
    };
    let count = |factor: f64, wanted: &[Verdict]| {
        let verdicts = (0..SIMULATIONS as u64).map(|seed| compare(seed, factor));
        verdicts.filter(|verdict| wanted.contains(verdict)).count()
    };
    let wrong = count(1.0, &[Verdict::Less, Verdict::More]);
    assert!(
        wrong <= 25,
        "{wrong} of {SIMULATIONS} see what is not there"
    );
    let same = count(1.0, &[Verdict::Equivalent]);
    assert!(
        same >= 1_900,
        "{same} of {SIMULATIONS} say that it is the same"
    );
    let faster = count(1.05, &[Verdict::More]);
    assert!(
        faster >= 1_990,
        "{faster} of {SIMULATIONS} see five per cent"
    );
    // Exactly at the margin either verdict is right, but "equivalent" only once in two hundred
    // times.
    let missed = count(1.02, &[Verdict::Equivalent]);
    assert!(missed <= 25, "{missed} of {SIMULATIONS}");
}
