//! Tests with the simulated switch.

use openflow::{Message, Version};
use record::Value;

use super::*;
use crate::catalogue::control::rig::ControlRig;
use crate::catalogue::control::simulated::{SimulatedSwitch, SwitchFaults};

const FLOWS: u32 = 1_000;

impl TableUnderTest for SimulatedSwitch {
    fn now(&self) -> Instant {
        ControlRig::now(self)
    }

    fn wait(&mut self, time: Duration) {
        self.advance(time);
    }

    fn send(&mut self, messages: &[u8]) -> Result<(), TrialError> {
        let mut rest = messages;
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let (_, message) = Message::decode(&rest[..length], Version::V10).unwrap();
            self.queue(&message)?;
            rest = &rest[length..];
        }
        self.work_off();
        Ok(())
    }

    fn list(&mut self) -> Result<Listing, TrialError> {
        let flows = self.flows_listed();
        let bytes = 12 + 96 * flows;
        Ok(Listing { flows, bytes })
    }

    fn list_with_echoes(&mut self) -> Result<TimedListing, TrialError> {
        let listing = self.list()?;
        let time = self.faults().statistics;
        self.advance(time);
        Ok(TimedListing {
            listing,
            time,
            echoes: 90,
            echo_max: self.faults().echo,
        })
    }

    fn clear(&mut self) -> Result<(), TrialError> {
        self.queue(&crate::catalogue::control::flows::delete_all())?;
        self.work_off();
        Ok(())
    }

    fn resident_bytes(&self) -> Result<u64, TrialError> {
        Ok(Self::resident_bytes(self))
    }
}

fn measured(faults: SwitchFaults) -> TrialResult {
    let mut device = SimulatedSwitch::new(Version::V10, faults);
    let point = Point::default().with("flows", Value::Number(FLOWS.into()));
    let test = TableTest::run(FLOWS, &mut device).unwrap();
    test.measured(&point, test.empty_bytes, Conditions::default())
}

fn assert_near(reading: &Reading, figure: &str, expected: f64) {
    let value = reading.figures[figure];
    assert!(
        (value / expected - 1.0).abs() < 1e-6,
        "{figure}: {value} instead of {expected}"
    );
}

#[test]
fn figures_are_those_of_the_device() {
    let measured = measured(SwitchFaults {
        per_message: Duration::from_micros(3),
        statistics: Duration::from_millis(90),
        echo: Duration::from_micros(77),
        rule_bytes: 350,
        kept_bytes: 50,
        ..SwitchFaults::default()
    });
    assert_eq!(measured.flaws, []);
    let reading = measured.reading;
    for (figure, expected) in [
        ("add_s", 1e6 / 3.0),
        ("add_first_s", 1e6 / 3.0),
        ("add_last_s", 1e6 / 3.0),
        ("flow_bytes", 350.0),
        ("resident_flow_bytes", 350.0),
        ("left_bytes", 50.0 * 1_000.0),
        ("tell_ms", 90.0),
        ("echo_max_ms", 0.077),
        ("delete_ms", 0.003),
        ("listed", 1_000.0),
        ("listed_bytes", 12.0 + 96.0 * 1_000.0),
        ("echoes", 90.0),
    ] {
        assert_near(&reading, figure, expected);
    }
}

#[test]
fn slowdown_of_a_full_table_shows_in_the_last_flows() {
    let measured = measured(SwitchFaults {
        per_message: Duration::from_micros(3),
        per_rule: Duration::from_nanos(10),
        ..SwitchFaults::default()
    });
    // 10 ns for each rule in the table: 250 on average of the first half, 750 of the last.
    let rate = |nanos: f64| 1e9 / nanos;
    let within = |figure: &str, expected: f64| {
        let value = measured.reading.figures[figure];
        assert!((value / expected - 1.0).abs() < 0.01, "{figure}: {value}");
    };
    within("add_first_s", rate(3_000.0 + 2_500.0));
    within("add_last_s", rate(3_000.0 + 7_500.0));
}

#[test]
fn device_with_other_flows_than_added_is_void() {
    let measured = measured(SwitchFaults {
        ignores_one_in: 400,
        undeletable: 1,
        ..SwitchFaults::default()
    });
    let flaws = measured.flaws.iter();
    let reasons: Vec<_> = flaws.map(|flaw| (flaw.void, &flaw.reason[..])).collect();
    assert_eq!(
        reasons,
        [
            (true, "the device listed 998 flows instead of 1000"),
            (
                true,
                "the device still had 1 flows after the deletion of all"
            ),
        ]
    );
}

#[test]
fn memory_is_relative_to_the_emptiest_process() {
    let mut device = SimulatedSwitch::new(
        Version::V10,
        SwitchFaults {
            rule_bytes: 350,
            kept_bytes: 350,
            ..SwitchFaults::default()
        },
    );
    let empty = TableUnderTest::resident_bytes(&device).unwrap();
    let point = Point::default();
    let tests = [(); 2].map(|()| TableTest::run(FLOWS, &mut device).unwrap());
    let readings = tests.map(|test| test.reading(&point, empty));
    assert_near(&readings[0], "flow_bytes", 350.0);
    // The second trial fills memory that the process still holds.
    assert!(readings[1].figures["flow_bytes"].abs() < 1e-6);
    assert_near(&readings[1], "resident_flow_bytes", 350.0);
}
