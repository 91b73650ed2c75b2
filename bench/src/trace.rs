//! Tables with a trace that is run through them.

use std::hint::black_box;
use std::time::Duration;

use fastpath::Classifier;
use pipeline::Pipeline;
use testkit::workload::{BatchRunner, FrameStream, Workload};

use crate::clock::now;

/// Batches between two looks at the clock: it would cost a lone one too much.
const BATCHES: usize = 64;

/// Batches in which workers learn: three windows of 512 looks at half a batch, and what is left
/// of one that has begun.
const LEARNING: usize = 4 * 512 / 2;

/// Tables, and the frames that meet them.
pub(crate) struct Trace {
    pipeline: Pipeline,
    stream: FrameStream,
}

impl Trace {
    /// Lays the workload and runs all its frames, and as many batches as it takes until a worker
    /// has seen of what use it is to remember the ways of frames.
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

    /// Runs so many batches.
    pub(crate) fn run(&mut self, batches: usize) {
        for _ in 0..batches {
            black_box(self.stream.run(&self.pipeline));
        }
    }

    /// Runs every frame once, or [`BATCHES`] if there are more.
    pub(crate) fn run_each(&mut self) {
        self.run(self.stream.batches().min(BATCHES));
    }

    /// Frames that [`Trace::run_each`] runs.
    pub(crate) fn each(&self) -> usize {
        self.stream.batches().min(BATCHES) * BatchRunner::BATCH
    }

    /// Nanoseconds a frame, over `millis` at least.
    pub(crate) fn time(&mut self, millis: u32) -> f64 {
        // What others have left of the caches is not this one's cost.
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
