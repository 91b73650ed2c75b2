//! Answers of `ovn-trace` and `ofproto/trace`: the hosts that receive a packet.

/// Hosts that receive a packet, in order; a host that receives two copies is there twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Hosts that receive the packet from the switch alone.
    pub(super) hosts: Vec<u8>,
    /// Hosts that receive packets which the controller makes.
    pub(super) from_controller: Vec<u8>,
    /// Number of messages to the controller.
    pub(super) controller: usize,
}

/// Actions of OVN whose block describes a packet that the controller makes.
const CONTROLLER_ACTIONS: [&str; 4] = ["icmp4", "icmp4_error", "tcp_reset", "arp"];

/// Actions of OVN that send an address to the controller, to be learned.
const LEARNING_ACTIONS: [&str; 2] = ["put_arp", "put_fdb"];

/// Actions of OVN whose block begins with the state of the connection in one more zone.
const TRACKING_ACTIONS: [&str; 2] = ["ct_next", "ct_lb_mark"];

/// Name of the action in a line of a summary.
fn action(line: &str) -> &str {
    line.split(['(', ' ']).next().unwrap_or_default()
}

/// Number of zones in which a packet was tracked before the controller answers it.
pub(super) fn zones_before_controller(summary: &str) -> Option<usize> {
    let blocks = summary.lines().map(str::trim);
    let actions: Vec<_> = blocks
        .filter(|line| line.ends_with('{'))
        .map(action)
        .collect();
    let end = actions
        .iter()
        .position(|action| CONTROLLER_ACTIONS.contains(action))?;
    let before = actions[..end].iter();
    Some(
        before
            .filter(|action| TRACKING_ACTIONS.contains(action))
            .count(),
    )
}

impl Answer {
    /// Parses the summary of `ovn-trace`.
    pub(super) fn of_ovn_trace(summary: &str) -> Self {
        let mut answer = Self::default();
        // The blocks that enclose a line: true for packets of the controller.
        let mut blocks = Vec::new();
        for line in summary.lines().map(str::trim) {
            let is_inside = blocks.contains(&true);
            if let Some(port) = line.strip_prefix("/* output to \"p") {
                let host = port.split('"').next().and_then(|host| host.parse().ok());
                let host = host.expect("the number of a host");
                match is_inside {
                    true => answer.from_controller.push(host),
                    false => answer.hosts.push(host),
                }
            }
            let name = action(line);
            let is_message = LEARNING_ACTIONS.contains(&name);
            if line.ends_with('{') {
                let is_controller = CONTROLLER_ACTIONS.contains(&name);
                answer.controller += usize::from(is_controller && !is_inside);
                blocks.push(is_controller);
            } else if line == "};" {
                blocks.pop();
            } else {
                answer.controller += usize::from(is_message && !is_inside);
            }
        }
        answer.sort();
        answer
    }

    /// Parses the datapath actions of a trace with names of ports.
    pub(super) fn of_switch_trace(output: &str) -> Self {
        let mut answer = Self::default();
        let lines = output.lines();
        let actions = lines.filter_map(|line| line.strip_prefix("Datapath actions: "));
        for word in actions.flat_map(|actions| actions.split(['(', ')', ','])) {
            if let Some(host) = word.strip_prefix('p').and_then(|host| host.parse().ok()) {
                answer.hosts.push(host);
            }
            answer.controller += usize::from(word == "controller");
        }
        answer.sort();
        answer
    }

    fn sort(&mut self) {
        self.hosts.sort_unstable();
        self.from_controller.sort_unstable();
    }

    /// All hosts that receive a packet.
    pub(super) fn all_hosts(&self) -> Vec<u8> {
        let mut all = [self.hosts.as_slice(), &self.from_controller].concat();
        all.sort_unstable();
        all
    }
}
