use super::*;
use crate::fixture;

#[test]
fn tmp_write() {
    std::fs::write("/tmp/fixture.html", render(&fixture::entries())).unwrap();
}
