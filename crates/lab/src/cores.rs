//! Assignment of cores to the lab and to the devices. The lab's threads poll without sleeping, so a
//! device on the same core would starve.

use std::panic;
use std::thread;

use testbed::Failure;

use crate::failure::BadOption;

/// Cores of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Cores of the lab's threads and of the hosts' programs.
    pub(crate) tester: Vec<usize>,
    /// Cores of the devices.
    pub(crate) device: Vec<usize>,
}

impl Cores {
    /// Returns the `given` cores of a machine with `present` cores. Missing ones have defaults: the
    /// first half of the cores, two at most, for the lab, and the next one for the devices. On a
    /// machine with one core, all share it.
    pub(crate) fn choose(given: &Self, present: usize) -> Result<Self, BadOption> {
        let all = given.tester.iter().chain(&given.device);
        if let Some(core) = all.copied().find(|&core| core >= present) {
            let last = present - 1;
            return Err(BadOption(format!(
                "core {core} does not exist: this machine has cores 0 to {last}"
            )));
        }
        let testers = (present / 2).clamp(1, 2);
        let chosen = |given: &[usize], otherwise: Vec<usize>| match given {
            [] => otherwise,
            _ => given.to_vec(),
        };
        Ok(Self {
            tester: chosen(&given.tester, (0..testers).collect()),
            device: chosen(&given.device, vec![testers.min(present - 1)]),
        })
    }

    /// Returns the first core of the tester; none if it has none.
    pub(crate) fn first(&self) -> &[usize] {
        &self.tester[..self.tester.len().min(1)]
    }

    /// Returns the core of the monitors: the last of the tester's, on which the second thread of a
    /// pair runs. If there is one only, the sender loses it for a moment.
    pub(crate) fn monitors(&self) -> Option<usize> {
        self.tester.last().copied()
    }
}

/// Runs `work` in a thread that is pinned to `cores`; the affinity of the caller's thread does not
/// change.
pub(crate) fn run_on<T, E>(
    cores: &[usize],
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E>
where
    T: Send,
    E: From<Failure> + Send,
{
    thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            testbed::pin_current_thread(cores)?;
            work()
        });
        let result = pinned.join();
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(tester: &[usize], device: &[usize]) -> Cores {
        Cores {
            tester: tester.to_vec(),
            device: device.to_vec(),
        }
    }

    #[test]
    fn lab_and_devices_have_separate_cores() {
        let chosen = |present| Cores::choose(&given(&[], &[]), present).unwrap();
        assert_eq!(chosen(1), given(&[0], &[0]));
        assert_eq!(chosen(2), given(&[0], &[1]));
        assert_eq!(chosen(4), given(&[0, 1], &[2]));
        assert_eq!(chosen(64), given(&[0, 1], &[2]));
    }

    #[test]
    fn given_cores_are_used_if_they_exist() {
        let cores = Cores::choose(&given(&[3], &[1, 2]), 4).unwrap();
        assert_eq!(cores, given(&[3], &[1, 2]));
        let missing = Cores::choose(&given(&[3], &[1, 2, 4]), 4).unwrap_err();
        let expected = "core 4 does not exist: this machine has cores 0 to 3";
        assert_eq!(missing.to_string(), expected);
    }
}
