//! Counters of SNMP, which begin again after their greatest value (RFC 2578, 7.1.6, 7.1.10).

/// How many bits a counter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `Counter32`.
    Bits32,
    /// `Counter64`.
    Bits64,
}

/// What a counter said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The value.
    pub value: u64,
    /// Of how many bits.
    pub width: Width,
}

impl Counter {
    /// What was counted since `earlier`, if the counter began again once at most; none if it
    /// has another width now.
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
    fn what_begins_again_goes_on_counting() {
        assert_eq!(narrow(5).since(narrow(u32::MAX - 4)), Some(10));
        assert_eq!(wide(5).since(wide(u64::MAX - 4)), Some(10));
        assert_eq!(wide(1 << 33).since(wide(0)), Some(1 << 33));
        assert_eq!(narrow(7).since(narrow(7)), Some(0));
        assert_eq!(wide(7).since(narrow(7)), None);
    }
}
