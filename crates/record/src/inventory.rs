//! What a switch is that its user has: by the user's own words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A switch on a shelf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventoryRecord {
    /// Who makes it.
    pub brand: String,
    /// What it is called.
    pub model: String,
    /// The version of what runs on it.
    #[serde(default)]
    pub firmware: Option<String>,
    /// What one costs, in `currency`.
    #[serde(default)]
    pub price: Option<f64>,
    /// The currency of that.
    #[serde(default)]
    pub currency: Option<String>,
    /// How many ports it has, used or not.
    #[serde(default)]
    pub ports: Option<u32>,
}

impl InventoryRecord {
    /// What a port costs, where price and ports are known.
    #[must_use]
    pub fn price_per_port(&self) -> Option<f64> {
        let ports = self.ports.filter(|ports| *ports > 0)?;
        Some(self.price? / f64::from(ports))
    }
}

impl fmt::Display for InventoryRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.brand, self.model)?;
        match &self.firmware {
            Some(firmware) => write!(f, ", {firmware}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_costs_its_share() {
        let text = r#"{"brand":"Acme","model":"Edge","price":240.0,"currency":"USD","ports":24}"#;
        let mut inventory: InventoryRecord = serde_json::from_str(text).unwrap();
        assert_eq!(inventory.price_per_port(), Some(10.0));
        assert_eq!(inventory.to_string(), "Acme Edge");
        inventory.ports = Some(0);
        assert_eq!(inventory.price_per_port(), None);
    }
}
