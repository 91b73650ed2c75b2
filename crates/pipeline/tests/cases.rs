//! Every case says what happens.

use std::path::Path;

#[test]
fn every_case_says_what_happens() {
    testkit::case::run_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
}
