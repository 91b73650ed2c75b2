//! Tables with a trace of frames to run through them.

use std::hint::black_box;
use std::time::Duration;

use fastpath::Classifier;
use pipeline::Pipeline;
use testkit::workload::{BatchRunner, FrameStream, Workload};

use crate::clock::now;

/// Batches between two readings of the clock, which would be too expensive for a single batch.
const BATCHES: usize = 64;

/// Batches until a worker has decided about its flow cache: three windows of 512 samples of half a
/// batch, and the rest of a window that has begun.
const LEARNING: usize = 4 * 512 / 2;

/// Tables and their frames.
pub(crate) struct Trace {
    pipeline: Pipeline,
    stream: FrameStream,
}

impl Trace {
    /// Installs the workload, runs all its frames, and runs batches until a worker has decided
    /// about the use of its flow cache.
    pub(crate) fn load(workload: &Workload) -> Self {
        let loaded = workload.load();
        let mut classifier = Classifier::new();
        loaded
            .changes
            .iter()
            .for_each(|changes| classifier.queue_changes(changes));
        let view = classifier.publish(&loaded.pipeline);
        let mut trace = Self {
            stream: FrameStream::new(view, &loaded.frames),
            pipeline: loaded.pipeline,
        };
        trace.run(trace.stream.batches().max(LEARNING));
        trace
    }

    /// Runs `batches` batches.
    pub(crate) fn run(&mut self, batches: usize) {
        for _ in 0..batches {
            black_box(self.stream.run(&self.pipeline));
        }
    }

    /// Runs every frame once, or [`BATCHES`] batches if those are more.
    pub(crate) fn run_each(&mut self) {
        self.run(self.stream.batches().min(BATCHES));
    }

    /// The number of frames that [`Trace::run_each`] runs.
    pub(crate) fn each(&self) -> usize {
        self.stream.batches().min(BATCHES) * BatchRunner::BATCH
    }

    /// Measures nanoseconds a frame, for at least `millis` milliseconds.
    pub(crate) fn time(&mut self, millis: u32) -> f64 {
        // Refills the caches, which other rows have evicted.
        self.run(self.stream.batches().max(BATCHES));
        let least = Duration::from_millis(millis.into());
        let (start, mut batches) = (now(), 0);
        loop {
            self.run(BATCHES);
            batches += BATCHES;
            let took = start.elapsed();
            if took >= least {
                return took.as_secs_f64() * 1e9 / (batches * BatchRunner::BATCH) as f64;
            }
        }
    }
}
