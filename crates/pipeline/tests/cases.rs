//! Runs every case of the corpus in the interpreter.

use std::path::Path;

#[test]
fn cases_have_expectations() {
    testkit::case::run_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
}
