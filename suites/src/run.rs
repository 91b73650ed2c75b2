//! Run of the suite: parallel labs, each with a thread that supervises it.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

use testbed::{Clock, Failure, Requirement, Spawner};

use crate::SuiteOptions;
use crate::catalogue::{Case, Catalogue, File};
use crate::lab::{Lab, LabPlan};
use crate::verdict::Verdict;

/// Interval at which a lab is checked.
const TICK: Duration = Duration::from_millis(250);

/// Time limit for the next verdict of a lab. The longest cases send for thirty seconds, wait for a
/// few replies, and may run three times.
const STALL: Duration = Duration::from_secs(200);

/// Time limit for all labs: twice their usual time on two busy cores.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Reason for the failure of each decided case; `None` if it passed.
pub(crate) type Outcomes = BTreeMap<Case, Option<String>>;

/// Runs all cases of `catalogue`; returns `None` if it was interrupted.
pub(crate) fn run(
    options: &SuiteOptions,
    catalogue: &Catalogue,
    stop: &AtomicBool,
) -> Result<Option<Outcomes>, Failure> {
    let mut needs = vec![Requirement::Namespaces, Requirement::Veth];
    needs.extend(testbed::OpenVswitch::requirements());
    testbed::check(&needs).map_err(|missing| Failure::to("run")(std::io::Error::other(missing)))?;
    let yard = RunDirectory::new()?;
    let batches = batches(catalogue, &yard)?;
    let watch = LabSupervisor {
        options,
        batches: &batches,
        yard: &yard,
        spawner: Spawner::new()?,
        clock: Clock::start(),
        stop,
    };
    let verdicts = watch.all_labs();
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(named(catalogue, verdicts)))
}

/// Temporary directory of a run, removed on drop.
struct RunDirectory(PathBuf);

impl RunDirectory {
    fn new() -> Result<Self, Failure> {
        // Short, since the path of a Unix socket has 107 bytes at most.
        let path = env::temp_dir().join(format!("comporta-suites-{}", process::id()));
        fs::create_dir_all(&path).map_err(Failure::to("make a directory"))?;
        Ok(Self(path))
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Cases that need the same kind of lab, queued for all labs.
struct Batch {
    version: String,
    streams: bool,
    queue: PathBuf,
    files: usize,
}

/// Queues the files in the catalogue's order, in batches that need the same kind of lab.
fn batches(catalogue: &Catalogue, yard: &RunDirectory) -> Result<Vec<Batch>, Failure> {
    let failure = || Failure::to("queue the cases");
    let mut batches: Vec<Batch> = Vec::new();
    for (number, file) in catalogue.files.iter().enumerate() {
        if batches
            .last()
            .is_none_or(|last| last.version != file.version() || last.streams != file.streams())
        {
            let queue = yard.0.join(format!("queue-{}", batches.len()));
            fs::create_dir(&queue).map_err(failure())?;
            batches.push(Batch {
                version: file.version().to_owned(),
                streams: file.streams(),
                queue,
                files: 0,
            });
        }
        let batch = batches.last_mut().expect("one was just pushed, if none");
        // The judge identifies files of cases by this extension.
        let link = batch.queue.join(format!("{number:04}.json"));
        symlink(&file.path, link).map_err(failure())?;
        batch.files += 1;
    }
    Ok(batches)
}

/// State of a thread that supervises a lab.
struct LabSupervisor<'a> {
    options: &'a SuiteOptions,
    batches: &'a [Batch],
    yard: &'a RunDirectory,
    spawner: Spawner,
    clock: Clock,
    stop: &'a AtomicBool,
}

impl LabSupervisor<'_> {
    /// Runs all labs to their ends.
    fn all_labs(&self) -> Vec<Verdict> {
        thread::scope(|scope| {
            let labs = usize::from(self.options.labs);
            let threads: Vec<_> = (0..labs)
                .map(|lab| scope.spawn(move || self.one_lab(lab)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().expect("a supervisor does not panic")
            };
            threads.into_iter().flat_map(join).collect()
        })
    }

    /// Runs the lab of this number; builds it anew for each batch with more files than that.
    fn one_lab(&self, lab: usize) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (number, batch) in self.batches.iter().enumerate() {
            if batch.files <= lab {
                continue;
            }
            let plan = self.plan(lab, number);
            if let Err(failure) = self.one_batch(&plan, &mut verdicts) {
                println!("lab {lab}, {}: {failure}", batch.version);
            }
            if self.is_over() {
                break;
            }
        }
        verdicts
    }

    fn one_batch(&self, plan: &LabPlan, verdicts: &mut Vec<Verdict>) -> Result<(), Failure> {
        let mut lab = Lab::start(plan, &self.spawner, &self.clock)?;
        let watched = self.supervise(&mut lab);
        verdicts.extend(lab.verdicts()?);
        watched
    }

    /// Supervises a lab until it is complete, or until it stalls or fails.
    fn supervise(&self, lab: &mut Lab) -> Result<(), Failure> {
        let (mut count, mut since) = (0, self.clock.now());
        while !lab.is_done_within(TICK)? && !self.is_over() {
            lab.check()?;
            let now = self.clock.now();
            let decided = lab.verdicts()?.len();
            if decided > count {
                (count, since) = (decided, now);
            } else if now.since(since) > STALL {
                return Err(Failure::Timeout {
                    what: "the next verdict".to_owned(),
                    limit: STALL,
                });
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let elapsed = self.clock.now().since(base::Instant::START);
        self.stop.load(Ordering::Relaxed) || elapsed > LIMIT
    }

    fn plan(&self, lab: usize, number: usize) -> LabPlan {
        let batch = &self.batches[number];
        let cores = thread::available_parallelism().map_or(1, usize::from);
        LabPlan {
            directory: self.yard.0.join(format!("{lab}-{number}")),
            queue: batch.queue.clone(),
            version: batch.version.clone(),
            streams: batch.streams,
            environment: self.options.environment.clone(),
            comporta: self.options.comporta.clone(),
            core: lab % cores,
        }
    }
}

/// Returns the outcomes by case.
fn named(catalogue: &Catalogue, verdicts: Vec<Verdict>) -> Outcomes {
    let by_path: BTreeMap<&Path, &File> = catalogue
        .files
        .iter()
        .map(|file| (file.path.as_path(), file))
        .collect();
    let case = |verdict: Verdict| {
        let file = by_path.get(Path::new(&verdict.file))?.name.clone();
        let number = verdict.number;
        Some((Case { file, number }, verdict.reason))
    };
    verdicts.into_iter().filter_map(case).collect()
}
