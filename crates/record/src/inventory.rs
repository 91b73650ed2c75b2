//! Inventory data of an external switch, from its description file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Inventory data of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventoryRecord {
    /// Manufacturer.
    pub brand: String,
    /// Model.
    pub model: String,
    /// Firmware version.
    #[serde(default)]
    pub firmware: Option<String>,
    /// Price, in `currency`.
    #[serde(default)]
    pub price: Option<f64>,
    /// Currency of the price.
    #[serde(default)]
    pub currency: Option<String>,
    /// Number of ports, used and unused.
    #[serde(default)]
    pub ports: Option<u32>,
}

impl InventoryRecord {
    /// Returns the price per port, if the price and the number of ports are known.
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
    fn price_per_port_divides_price_by_ports() {
        let text = r#"{"brand":"Acme","model":"Edge","price":240.0,"currency":"USD","ports":24}"#;
        let mut inventory: InventoryRecord = serde_json::from_str(text).unwrap();
        assert_eq!(inventory.price_per_port(), Some(10.0));
        assert_eq!(inventory.to_string(), "Acme Edge");
        inventory.ports = Some(0);
        assert_eq!(inventory.price_per_port(), None);
    }
}
