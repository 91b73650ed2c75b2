//! Tests of samplers on this process.

use super::*;

#[test]
fn sampler_samples_processes_until_it_stops() {
    let clock = Clock::start();
    let plan = SamplingPlan {
        interval: Duration::from_millis(5),
        core: Some(0),
        // No process has this identifier, which exceeds the kernel's maximum.
        ..SamplingPlan::of(vec![std::process::id(), 4_194_305])
    };
    let sampler = Sampler::start(plan, &clock).unwrap();
    let samples = sampler.stop();
    let kept = samples.kept();
    assert!(kept.len() >= 2, "{}", kept.len());
    assert!(kept.iter().all(|one| one.processes[0].is_some()));
    assert!(kept.iter().all(|one| one.processes[1].is_none()));
    assert!(kept.windows(2).all(|pair| pair[0].at < pair[1].at));
    assert_eq!(samples.unreadable, kept.len() as u64);
    let record = management_record(&samples);
    assert_eq!(record.samples, kept.len());
    assert!(record.resident_bytes_max > 0 && !record.softirq.is_empty());
    assert!(record.cores().is_some() && record.ns_per_frame().is_none());
}

#[test]
fn dropped_sampler_ends_its_thread() {
    let clock = Clock::start();
    let plan = SamplingPlan::of(Vec::new());
    let mut sampler = Sampler::start(plan, &clock).unwrap();
    let thread = sampler.0.thread.take().unwrap();
    drop(sampler);
    let samples = thread.join().unwrap().kept().len();
    assert!(
        (1..=3).contains(&samples),
        "the last, and few before: {samples}"
    );
}
