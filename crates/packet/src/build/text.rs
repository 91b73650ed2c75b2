//! Text form of a stack: layers as `name(field=value, ..)`, separated by ` / `. A field with its
//! default value is omitted; a layer with one field shows only the value.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::layer::Layer;
use super::{ChecksumFill, Stack};
use crate::MacAddr;
use crate::wire::ethernet::EtherType;

/// Receiver of a layer's fields.
pub(super) type FieldVisitor<'a> = dyn FnMut(&'static str, &mut dyn FieldValue) + 'a;

/// A field's value, as text.
pub(super) trait FieldValue {
    /// Parses `text` as the value, or returns `None`.
    fn read(&mut self, text: &str) -> Option<()>;

    /// The value as text.
    fn write(&self) -> String;
}

/// The text is no stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseStackError {
    /// No layer has this name.
    #[error("unknown layer: {0}")]
    Layer(String),
    /// The layer does not have this field, or the field does not have this value.
    #[error("invalid field of {layer}: {text}")]
    Field {
        /// The layer.
        layer: &'static str,
        /// The text.
        text: String,
    },
}

/// Any bytes, written in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

/// TCP flags in letters, `F`, `S`, `R`, `P`, `A`, `U`, `E`, `C`, `N` from bit 0 to bit 8, or as a
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u16);

const FLAG_LETTERS: &str = "FSRPAUECN";

impl FromStr for Stack {
    type Err = ParseStackError;

    fn from_str(text: &str) -> Result<Self, ParseStackError> {
        if text.trim().is_empty() {
            return Ok(Self::new());
        }
        let layers = text.split('/').map(|layer| read_layer(layer.trim()));
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
        })
    }
}

fn read_layer(text: &str) -> Result<Layer, ParseStackError> {
    let (name, fields) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
        None => (text, ""),
    };
    let mut layer = Layer::named(name).ok_or_else(|| ParseStackError::Layer(name.to_owned()))?;
    for field in fields.split(',').map(str::trim).filter(|f| !f.is_empty()) {
        read_field(&mut layer, field).ok_or_else(|| ParseStackError::Field {
            layer: layer.name(),
            text: field.to_owned(),
        })?;
    }
    Ok(layer)
}

/// Parses `name=value`, the name of a boolean, or the value alone in a layer with one field.
fn read_field(layer: &mut Layer, text: &str) -> Option<()> {
    let mut count = 0;
    layer.fields(&mut |_, _| count += 1);
    let (filter, value) = match text.split_once('=') {
        Some((name, value)) => (Some(name), value),
        None if count == 1 => (None, text),
        None => (Some(text), "true"),
    };
    let mut done = None;
    layer.fields(&mut |name, field| {
        if filter.is_none_or(|filter| filter == name) {
            done = field.read(value);
        }
    });
    done
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers: Vec<_> = self.layers.iter().map(Layer::to_string).collect();
        f.write_str(&layers.join(" / "))
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defaults = self.defaults();
        let only = defaults.len() == 1;
        let mut defaults = defaults.into_iter();
        let mut parts = Vec::new();
        self.clone().fields(&mut |name, value| {
            let text = value.write();
            if defaults.next().as_ref() != Some(&text) {
                parts.push(match text.as_str() {
                    "true" => name.to_owned(),
                    _ if only => text,
                    _ => format!("{name}={text}"),
                });
            }
        });
        f.write_str(self.name())?;
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, "({})", parts.join(","))
    }
}

impl Layer {
    /// The defaults of all fields, as text.
    pub(super) fn defaults(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(mut plain) = Self::named(self.name()) {
            plain.fields(&mut |_, value| texts.push(value.write()));
        }
        texts
    }

    /// Sets the field with index `number` to the value `text`.
    pub(super) fn set_nth(&mut self, number: usize, text: &str) {
        let mut index = 0;
        self.fields(&mut |_, value| {
            if index == number {
                let _ = value.read(text);
            }
            index += 1;
        });
    }
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $(impl FieldValue for $type {
            fn read(&mut self, text: &str) -> Option<()> {
                *self = match text.strip_prefix("0x") {
                    Some(hex) => Self::from_str_radix(hex, 16).ok()?,
                    None => text.parse().ok()?,
                };
                Some(())
            }

            fn write(&self) -> String {
                self.to_string()
            }
        })+
    };
}

macro_rules! addresses {
    ($($type:ty),+) => {
        $(impl FieldValue for $type {
            fn read(&mut self, text: &str) -> Option<()> {
                *self = text.parse().ok()?;
                Some(())
            }

            fn write(&self) -> String {
                self.to_string()
            }
        })+
    };
}

numbers!(u8, u16, u32, usize);
addresses!(bool, MacAddr, Ipv4Addr, Ipv6Addr);

impl<T: FieldValue + Default> FieldValue for Option<T> {
    /// No text is no value.
    fn read(&mut self, text: &str) -> Option<()> {
        let mut value = T::default();
        *self = match text {
            "" => None,
            _ => {
                value.read(text)?;
                Some(value)
            }
        };
        Some(())
    }

    fn write(&self) -> String {
        self.as_ref().map(T::write).unwrap_or_default()
    }
}

impl FieldValue for HexBytes {
    fn read(&mut self, text: &str) -> Option<()> {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        self.0 = digits.map(byte).collect::<Option<_>>()?;
        text.len().is_multiple_of(2).then_some(())
    }

    fn write(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FieldValue for EtherType {
    fn read(&mut self, text: &str) -> Option<()> {
        self.0.read(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl FieldValue for TcpFlags {
    fn read(&mut self, text: &str) -> Option<()> {
        if self.0.read(text).is_some() {
            return Some(());
        }
        self.0 = 0;
        for letter in text.chars() {
            self.0 |= 1 << FLAG_LETTERS.find(letter)?;
        }
        Some(())
    }

    fn write(&self) -> String {
        if self.0 == 0 || self.0 >= 1 << FLAG_LETTERS.len() {
            return self.0.to_string();
        }
        let set = |(bit, _): &(usize, char)| self.0 >> bit & 1 == 1;
        let letters = FLAG_LETTERS.chars().enumerate().filter(set);
        letters.map(|(_, letter)| letter).collect()
    }
}

impl FieldValue for ChecksumFill {
    fn read(&mut self, text: &str) -> Option<()> {
        *self = match text {
            "right" => Self::Correct,
            "partial" => Self::Partial,
            _ => {
                let mut number = 0_u32;
                number.read(text)?;
                Self::Value(number)
            }
        };
        Some(())
    }

    fn write(&self) -> String {
        match self {
            Self::Correct => "right".to_owned(),
            Self::Partial => "partial".to_owned(),
            Self::Value(value) => value.to_string(),
        }
    }
}
