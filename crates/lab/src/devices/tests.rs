//! Devices with known faults, for tests of the instrument.

use std::path::PathBuf;

use testbed::{Bench, Clock, DeviceKind, DeviceOptions, Impairments, Settings, Setup, Spawner};

/// Returns a bench with a faulty device; `None` without root.
pub(crate) fn impaired(impairments: Impairments) -> Option<Bench> {
    let kind = DeviceKind::Impaired(None);
    if let Err(missing) = testbed::check(&kind.requirements("comporta".as_ref())) {
        println!("skipped: {missing}");
        return None;
    }
    let options = DeviceOptions {
        kind,
        directory: PathBuf::from("."),
        cores: Vec::new(),
        comporta: PathBuf::new(),
    };
    let setup = Setup {
        settings: Settings::Impairments(Box::new(impairments)),
        ..Setup::default()
    };
    let spawner = Spawner::new().unwrap();
    Some(Bench::build_as(&spawner, &Clock::start(), &options, &setup).unwrap())
}
