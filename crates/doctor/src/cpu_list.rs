//! Lists of cores in the kernel's format (cpuset(7), "List format"): `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(BTreeSet<u32>);

/// The text is not a list of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a list of cores: expected numbers up to {}, such as 1,4-7",
    CpuList::NUMBER_MAX
)]
pub struct ParseCpuListError;

impl CpuList {
    /// The highest number of a core (`CONFIG_NR_CPUS` is 8,192 at most).
    pub const NUMBER_MAX: u32 = 8191;

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the set contains this core.
    #[must_use]
    pub fn has(&self, core: u32) -> bool {
        self.0.contains(&core)
    }

    /// Returns the cores in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Returns the cores that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        Self(self.0.difference(&others.0).copied().collect())
    }

    /// Returns the cores that are also in `others`.
    #[must_use]
    pub fn shared_with(&self, others: &Self) -> Self {
        Self(self.0.intersection(&others.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<T: IntoIterator<Item = u32>>(cores: T) -> Self {
        Self(cores.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = ParseCpuListError;

    /// Parses a list; blank text is an empty list.
    fn from_str(text: &str) -> Result<Self, ParseCpuListError> {
        let mut cores = BTreeSet::new();
        for range in text.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse::<u32>().map_err(|_| ParseCpuListError);
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last > Self::NUMBER_MAX {
                return Err(ParseCpuListError);
            }
            cores.extend(first..=last);
        }
        Ok(Self(cores))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_list_parses_kernel_format() {
        for (text, formatted) in [
            ("", ""),
            ("\n", ""),
            ("0\n", "0"),
            ("0-3,8", "0-3,8"),
            ("8,1,0,2", "0-2,8"),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.to_string(), formatted, "{text:?}");
        }
    }

    #[test]
    fn invalid_cpu_list_is_rejected() {
        for text in ["x", "3-1", "1-", "-1", "0-4294967295", "9999", "1 2"] {
            assert_eq!(text.parse::<CpuList>(), Err(ParseCpuListError), "{text:?}");
        }
    }
}
