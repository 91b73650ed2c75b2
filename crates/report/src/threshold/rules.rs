//! Thresholds in a TOML file. A rule may have several limits, and each is a threshold.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use record::{Catalogue, Description};
use serde::Deserialize;

use super::{Limit, Side, Threshold};

/// Error in a file of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct BadRules {
    path: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdFile {
    #[serde(default)]
    rule: Vec<ThresholdRule>,
}

/// Rule of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdRule {
    scenario: String,
    metric: String,
    device: Option<String>,
    #[serde(default, rename = "where")]
    point: BTreeMap<String, toml::Value>,
    min: Option<f64>,
    max: Option<f64>,
    min_ratio_to: Option<String>,
    max_ratio_to: Option<String>,
    ratio: Option<f64>,
    baseline: Option<String>,
    max_regression: Option<String>,
}

/// Reads the thresholds of the file `path`. The directories of baselines are relative to it.
///
/// # Errors
/// The file cannot be read, or a rule is invalid.
pub fn read_rules(path: &Path, catalogue: Catalogue) -> Result<Vec<Threshold>, BadRules> {
    let bad = |reason: String| BadRules {
        path: path.display().to_string(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let base = path.parent().unwrap_or_else(|| Path::new(""));
    thresholds(&text, base, catalogue).map_err(bad)
}

/// Parses the thresholds in `text`.
pub(super) fn thresholds(
    text: &str,
    base: &Path,
    catalogue: Catalogue,
) -> Result<Vec<Threshold>, String> {
    let file: ThresholdFile = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.rule.is_empty() {
        return Err("there is no [[rule]]".to_owned());
    }
    let mut all = Vec::new();
    for (number, rule) in (1..).zip(file.rule) {
        let of_rule = rule.thresholds(base, catalogue);
        all.extend(of_rule.map_err(|reason| format!("rule {number}: {reason}"))?);
    }
    Ok(all)
}

impl ThresholdRule {
    fn thresholds(self, base: &Path, catalogue: Catalogue) -> Result<Vec<Threshold>, String> {
        let threshold = Threshold {
            experiment: self.experiment(catalogue)?,
            device: self.device.clone(),
            point: self.point()?,
            figure: (self.metric != "*").then(|| self.metric.clone()),
            limit: Limit::Number {
                side: Side::Less,
                number: 0.0,
            },
        };
        threshold.check_names(catalogue)?;
        let limits = self.limits(base)?;
        if limits.is_empty() {
            let expected = "expected one of min, max, min_ratio_to, max_ratio_to, baseline";
            return Err(expected.to_owned());
        }
        let with = |limit| Threshold {
            limit,
            ..threshold.clone()
        };
        Ok(limits.into_iter().map(with).collect())
    }

    fn experiment(&self, catalogue: Catalogue) -> Result<Option<&'static Description>, String> {
        match self.scenario.as_str() {
            "*" => Ok(None),
            name => catalogue
                .parse(name)
                .map(Some)
                .map_err(|error| error.to_string()),
        }
    }

    fn point(&self) -> Result<Vec<(String, String)>, String> {
        let values = self.point.iter().map(|(name, value)| match value {
            toml::Value::String(word) => Ok((name.clone(), word.clone())),
            toml::Value::Integer(number) => Ok((name.clone(), number.to_string())),
            _ => Err(format!("where.{name}: expected a word or an integer")),
        });
        values.collect()
    }

    fn limits(self, base: &Path) -> Result<Vec<Limit>, String> {
        let number =
            |side, number: Option<f64>| number.map(|number| Limit::Number { side, number });
        let factor = self.ratio.unwrap_or(1.0);
        if !(factor.is_finite() && factor > 0.0) {
            return Err("ratio: expected a number above 0".to_owned());
        }
        let has_device = self.min_ratio_to.is_some() || self.max_ratio_to.is_some();
        if self.ratio.is_some() && !has_device {
            return Err("ratio: needs min_ratio_to or max_ratio_to".to_owned());
        }
        let ratio = |side, device: Option<String>| {
            device.map(|device| Limit::Device {
                side,
                factor,
                device,
            })
        };
        let baseline = match (self.baseline, self.max_regression) {
            (Some(directory), share) => Some(Limit::Baseline {
                directory: base.join(directory),
                regression: share.as_deref().map_or(Ok(0.0), percent)?,
            }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err("max_regression: needs baseline".to_owned());
            }
        };
        let limits = [
            number(Side::AtLeast, self.min),
            number(Side::AtMost, self.max),
            ratio(Side::AtLeast, self.min_ratio_to),
            ratio(Side::AtMost, self.max_ratio_to),
            baseline,
        ];
        Ok(limits.into_iter().flatten().collect())
    }
}

/// Parses a share, as `5%`.
fn percent(text: &str) -> Result<f64, String> {
    crate::format::read_percent(text).ok_or_else(|| {
        format!("max_regression: '{text}': expected a percentage from 0 to 1000, as '5%'")
    })
}
