//! Counts test results in the output of test binaries.
//!
//! It parses the lines of libtest and compatible harnesses; other output is ignored.

/// Numbers of tests, or of steps without tests, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// A skipped test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkippedTest {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// The results of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestTally {
    pub(crate) counts: ResultCounts,
    /// Names of failed tests.
    pub(crate) failures: Vec<String>,
    /// Names of tests that passed when they were repeated.
    pub(crate) second_tries: Vec<String>,
    /// Skipped tests with their reasons.
    pub(crate) skips: Vec<SkippedTest>,
}

impl TestTally {
    /// Returns one success.
    pub(crate) fn passed() -> Self {
        let mut tally = Self::default();
        tally.counts.passed = 1;
        tally
    }

    /// Returns one failure: `name`, for `reason`.
    pub(crate) fn failed(name: &str, reason: &str) -> Self {
        let mut tally = Self::default();
        tally.fail(name, reason);
        tally
    }

    /// Adds a failure.
    pub(crate) fn fail(&mut self, name: &str, reason: &str) {
        self.counts.failed += 1;
        self.failures.push(format!("{name}: {reason}"));
    }

    /// Replaces the failure of `name` by the result of its repetition.
    pub(crate) fn try_again(&mut self, name: &str, again: &Self) {
        let passed = again.counts.passed > 0 && again.counts.failed == 0;
        let place = self.failures.iter().position(|failure| failure == name);
        if let Some(place) = place.filter(|_| passed) {
            self.failures.remove(place);
            self.second_tries.push(name.to_owned());
            self.counts.failed -= 1;
            self.counts.passed += 1;
        }
    }

    /// Parses a line of a test binary's output.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.counts.passed += number_before(result, " passed");
            self.counts.failed += number_before(result, " failed");
            self.counts.skipped += number_before(result, " ignored");
        } else if let Some((name, end)) = line
            .strip_prefix("test ")
            .and_then(|test| test.rsplit_once(" ... "))
        {
            self.hear_test(name, end);
        }
    }

    /// Parses the result of one test. Compatible harnesses pad names to one width and put reasons
    /// in brackets.
    fn hear_test(&mut self, name: &str, end: &str) {
        let name = name.trim_end();
        if end == "FAILED" || end.starts_with("FAILED ") {
            self.failures.push(name.to_owned());
        } else if let Some(reason) = end.strip_prefix("ignored") {
            let reason = reason.trim_start_matches([',', ' ']);
            let bare = reason
                .strip_prefix('(')
                .and_then(|reason| reason.strip_suffix(')'));
            let reason = match bare.unwrap_or(reason) {
                "" => "no reason given",
                reason => reason,
            };
            self.skips.push(SkippedTest {
                name: name.to_owned(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Adds the results of another step.
    pub(crate) fn add(&mut self, other: Self) {
        self.counts.passed += other.counts.passed;
        self.counts.failed += other.counts.failed;
        self.counts.skipped += other.counts.skipped;
        self.failures.extend(other.failures);
        self.second_tries.extend(other.second_tries);
        self.skips.extend(other.skips);
    }
}

/// Returns the number before `word`, or zero.
fn number_before(text: &str, word: &str) -> u64 {
    let Some((before, _)) = text.split_once(word) else {
        return 0;
    };
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(output: &str) -> TestTally {
        let mut tally = TestTally::default();
        output.lines().for_each(|line| tally.hear(line));
        tally
    }

    #[test]
    fn results_of_several_binaries_add_up() {
        let tally = heard(
            "running 3 tests\n\
             test a::adds ... ok\n\
             test a::divides ... FAILED\n\
             test a::sleeps ... ignored\n\
             test a::needs_root ... ignored, needs root, and two CPUs\n\
             failures:\n\
             ---- a::divides stdout ----\n\
             test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             running 12 tests\n\
             test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 1.20s\n",
        );
        let counts = ResultCounts {
            passed: 13,
            failed: 1,
            skipped: 2,
        };
        assert_eq!(tally.counts, counts);
        assert_eq!(tally.failures, ["a::divides"]);
        let skips: Vec<_> = tally
            .skips
            .iter()
            .map(|skip| (&*skip.name, &*skip.reason))
            .collect();
        assert_eq!(
            skips,
            [
                ("a::sleeps", "no reason given"),
                ("a::needs_root", "needs root, and two CPUs"),
            ]
        );
    }

    #[test]
    fn repetition_that_passes_is_reported() {
        let mut tally = heard(
            "test a::one ... FAILED\n\
             test a::two ... FAILED\n\
             test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        let passed = heard("test a::one ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored");
        let failed = heard("test a::two ... FAILED\ntest result: FAILED. 0 passed; 1 failed;");
        tally.try_again("a::one", &passed);
        tally.try_again("a::two", &failed);
        tally.try_again("a::three", &passed);
        assert_eq!((tally.counts.passed, tally.counts.failed), (4, 1));
        assert_eq!(tally.failures, ["a::two"]);
        assert_eq!(tally.second_tries, ["a::one"]);
    }

    #[test]
    fn names_with_dots_and_times_are_read() {
        let tally = heard(
            "test src/lib.rs - thing (line 3) ... ignored\n\
             test odd ... name ... FAILED <0.003s>\n\
             test result: FAILED. 0 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!(tally.skips[0].name, "src/lib.rs - thing (line 3)");
        assert_eq!(tally.failures, ["odd ... name"]);
        assert_eq!(
            tally.counts,
            ResultCounts {
                passed: 0,
                failed: 1,
                skipped: 1
            }
        );
    }

    #[test]
    fn compatible_harness_output_is_parsed() {
        let tally = heard(
            "test short     ... ignored (no module x (or y))\n\
             test as_long_as ... FAILED\n",
        );
        assert_eq!(tally.skips[0].name, "short");
        assert_eq!(tally.skips[0].reason, "no module x (or y)");
        assert_eq!(tally.failures, ["as_long_as"]);
    }

    #[test]
    fn unrelated_lines_are_ignored() {
        let noise = "test\ntest result\ntest result: ok.\ntest x\n10 passed; 3 failed\n\u{1b}[1m\n";
        assert_eq!(heard(noise), TestTally::default());
    }
}
