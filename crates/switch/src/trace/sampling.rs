//! `sample` actions in a trace, as datapath actions.

use base::PortNo;
use flow::{SampleAction, SampleDirection};

use super::TracedBridge;

/// The number that is printed without a port.
const NO_PORT: &str = "4294967295";

impl TracedBridge {
    /// Returns the datapath action of a sample; none without collectors.
    pub(super) fn sampled(&self, sample: &SampleAction, from: PortNo) -> Option<String> {
        if !self.samples {
            return None;
        }
        let SampleAction {
            probability,
            collectors,
            domain,
            point,
            ..
        } = *sample;
        let port = sample.port.filter(|port| *port != from);
        let port = port.and_then(|port| self.ports.get(&port));
        let port = port.map_or(NO_PORT, |(number, _)| number.as_str());
        let direction = match sample.direction {
            SampleDirection::Unspecified => "",
            SampleDirection::Ingress => ",ingress",
            SampleDirection::Egress => ",egress",
        };
        let action = format!(
            "userspace(pid=0,flow_sample(probability={probability},collector_set_id={collectors},\
             obs_domain_id={domain},obs_point_id={point},output_port={port}{direction}))"
        );
        let percent = f64::from(probability) * 100.0 / f64::from(u16::MAX);
        Some(match probability {
            u16::MAX => action,
            _ => format!("sample(sample={percent:.1}%,actions({action}))"),
        })
    }
}
