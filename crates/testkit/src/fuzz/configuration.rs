//! Configuration files of `comporta switch`: any text. A configuration that is accepted is reached
//! from an empty one, and needs no further step.

use config::Config;
use config::reconcile::reconcile;

/// The longest text, which keeps a run short.
const TEXT_MAX: usize = 16_384;

/// Parses `data` as a configuration.
///
/// # Panics
/// If an accepted configuration differs from itself.
pub fn configuration(data: &[u8]) {
    let text = std::str::from_utf8(data).ok();
    let Some(text) = text.filter(|text| text.len() <= TEXT_MAX) else {
        return;
    };
    let Ok(config) = Config::from_toml(text) else {
        return;
    };
    for step in reconcile(&Config::default(), &config) {
        assert!(!step.to_string().is_empty());
    }
    let steps = reconcile(&config, &config);
    assert!(steps.is_empty(), "{steps:?}");
}
