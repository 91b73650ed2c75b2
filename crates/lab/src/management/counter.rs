//! Counters of SNMP, which wrap after their maximum (RFC 2578, 7.1.6, 7.1.10).

/// Width of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `Counter32`.
    Bits32,
    /// `Counter64`.
    Bits64,
}

/// Value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Value.
    pub value: u64,
    /// Width.
    pub width: Width,
}

impl Counter {
    /// Returns the difference from `earlier` if the counter wrapped at most once; `None` if its
    /// width has changed.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<u64> {
        if self.width != earlier.width {
            return None;
        }
        let passed = self.value.wrapping_sub(earlier.value);
        Some(match self.width {
            Width::Bits32 => passed & u64::from(u32::MAX),
            Width::Bits64 => passed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(value: u32) -> Counter {
        Counter {
            value: value.into(),
            width: Width::Bits32,
        }
    }

    fn wide(value: u64) -> Counter {
        Counter {
            value,
            width: Width::Bits64,
        }
    }

    #[test]
    fn counter_continues_after_a_wrap() {
        assert_eq!(narrow(5).since(narrow(u32::MAX - 4)), Some(10));
        assert_eq!(wide(5).since(wide(u64::MAX - 4)), Some(10));
        assert_eq!(wide(1 << 33).since(wide(0)), Some(1 << 33));
        assert_eq!(narrow(7).since(narrow(7)), Some(0));
        assert_eq!(wide(7).since(narrow(7)), None);
    }
}
