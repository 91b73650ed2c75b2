//! Samplers at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn processes_are_looked_at_until_it_ends() {
    let clock = Clock::start();
    let plan = Plan {
        interval: Duration::from_millis(5),
        core: Some(0),
        // No process has this number: it is above the kernel's largest.
        ..Plan::of(vec![std::process::id(), 4_194_305])
    };
    let sampler = Sampler::start(plan, &clock).unwrap();
    let watched = sampler.stop();
    let kept = watched.samples.kept();
    assert!(kept.len() >= 2, "{}", kept.len());
    assert!(kept.iter().all(|one| one.processes[0].is_some()));
    assert!(kept.iter().all(|one| one.processes[1].is_none()));
    assert!(kept.windows(2).all(|pair| pair[0].at < pair[1].at));
    assert_eq!(watched.samples.unreadable, kept.len() as u64);
    let record = ManagementRecord::of(&watched);
    assert_eq!(record.samples, kept.len());
    assert!(record.resident_bytes_max > 0 && !record.softirq.is_empty());
    assert_eq!(watched.polls, None);
}

#[test]
fn port_counters_come_from_whoever_has_them() {
    let clock = Clock::start();
    let asked = Arc::new(AtomicU64::new(0));
    let ports: Ports = Box::new({
        let asked = Arc::clone(&asked);
        move || match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Err("the device is down".to_owned()),
            count => Ok(vec![(10 * count, count)]),
        }
    });
    let plan = Plan {
        poll_interval: Duration::from_millis(2),
        ports: Some(ports),
        ..Plan::of(Vec::new())
    };
    let sampler = Sampler::start(plan, &clock).unwrap();
    let enough = || Ok((asked.load(Ordering::Relaxed) >= 3).then_some(()));
    let patience = Duration::from_secs(30);
    clock.wait_for("three questions", patience, enough).unwrap();
    let polls = sampler.stop().polls.unwrap();
    assert_eq!((polls.portless, polls.unanswered), (1, 0));
    assert_eq!(polls.reason.as_deref(), Some("the device is down"));
    assert_eq!(polls.ports[0].1, [(10, 1)]);
    assert_eq!(polls.ports.len() as u64, asked.load(Ordering::Relaxed) - 1);
}

#[test]
fn what_is_dropped_ends() {
    let clock = Clock::start();
    let plan = Plan::of(Vec::new());
    let mut sampler = Sampler::start(plan, &clock).unwrap();
    let thread = sampler.sampling.take().unwrap();
    drop(sampler);
    let looks = thread.join().unwrap().kept().len();
    assert!(
        (1..=3).contains(&looks),
        "the last, and few before: {looks}"
    );
}
