//! Results of conformance suites, compared with lists of expected failures. The programs of this
//! package share it: `suites` (os-ken's switch tests) and `autotest` (Open vSwitch's own tests).

mod expected;
mod report;

pub use expected::ExpectedFailures;
pub use report::{CaseOutcome, SuiteCase, SuiteReport};
