//! x
/// x
pub fn render(_: &[crate::record::Entry]) -> String {
    String::new()
}
