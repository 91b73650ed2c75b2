//! Progress of a run: a bar with a forecast on a terminal, plain lines in a log. It uses standard
//! error, since standard output is for results.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Receiver of a run's progress.
pub trait Progress {
    /// Begins a run of `tests` trials, which take about `forecast` in all.
    fn begin(&mut self, tests: usize, forecast: Duration);
    /// Begins the trial `id`; `done` of the forecast time has passed.
    fn test(&mut self, id: &str, done: Duration);
    /// Ends a trial; `summary` is its result in a line.
    fn result(&mut self, summary: &str);
    /// Shows another remark.
    fn note(&mut self, text: &str);
    /// Ends the run.
    fn end(&mut self);
}

/// Returns the progress that suits standard error: a bar on a terminal, otherwise lines.
#[must_use]
pub fn on_stderr() -> Box<dyn Progress> {
    if io::stderr().is_terminal() {
        Box::new(Bar {
            bar: ProgressBar::hidden(),
        })
    } else {
        Box::new(Lines {
            out: io::stderr(),
            tests: 0,
            begun: 0,
        })
    }
}

/// Progress without output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: usize, _: Duration) {}
    fn test(&mut self, _: &str, _: Duration) {}
    fn result(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn end(&mut self) {}
}

/// Bar at the bottom of a terminal; results scroll above it.
struct Bar {
    bar: ProgressBar,
}

impl Progress for Bar {
    fn begin(&mut self, _: usize, forecast: Duration) {
        // The length is the forecast in milliseconds, so that short trials move the bar little.
        let style = "{elapsed_precise} [{bar:32}] about {eta} left  {msg}";
        let style = ProgressStyle::with_template(style)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        self.bar =
            ProgressBar::with_draw_target(Some(millis(forecast)), ProgressDrawTarget::stderr())
                .with_style(style);
        self.bar.enable_steady_tick(Duration::from_secs(1));
    }

    fn test(&mut self, id: &str, done: Duration) {
        self.bar.set_position(millis(done));
        self.bar.set_message(id.to_owned());
    }

    fn result(&mut self, summary: &str) {
        self.bar.println(summary);
    }

    fn note(&mut self, text: &str) {
        if self.bar.is_hidden() {
            // A closed reader is not an error of the run.
            let _ = writeln!(io::stderr(), "{text}");
        } else {
            self.bar.println(text);
        }
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One line for each trial.
struct Lines<W> {
    out: W,
    tests: usize,
    begun: usize,
}

impl<W: Write> Lines<W> {
    fn line(&mut self, text: &str) {
        // A closed reader is not an error of the run.
        let _ = writeln!(self.out, "{text}");
    }
}

impl<W: Write> Progress for Lines<W> {
    fn begin(&mut self, tests: usize, forecast: Duration) {
        self.tests = tests;
        let minutes = forecast.as_secs().div_ceil(60);
        self.line(&format!("{tests} tests, about {minutes} min"));
    }

    fn test(&mut self, _: &str, _: Duration) {
        self.begun += 1;
    }

    fn result(&mut self, summary: &str) {
        let (begun, tests) = (self.begun, self.tests);
        self.line(&format!("[{begun}/{tests}] {summary}"));
    }

    fn note(&mut self, text: &str) {
        self.line(text);
    }

    fn end(&mut self) {}
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_has_a_line_for_each_trial() {
        let mut lines = Lines {
            out: Vec::new(),
            tests: 0,
            begun: 0,
        };
        lines.begin(2, Duration::from_secs(61));
        lines.test("echo/ip/64/ovs/1", Duration::ZERO);
        lines.result("echo/ip/64/ovs/1: 51 us");
        lines.note("stopped");
        lines.end();
        assert_eq!(
            String::from_utf8(lines.out).unwrap(),
            "2 tests, about 2 min\n[1/2] echo/ip/64/ovs/1: 51 us\nstopped\n"
        );
    }
}
