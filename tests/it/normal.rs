//! `NORMAL` beside that of Open vSwitch: both have the same hosts and are told the same, and
//! every frame must reach the same of them and look the same there.

use packet::build::Stack;
use testbed::{Failure, Process};

use crate::eye::frames;
use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;
use crate::site::{Daemon, Site};
use crate::unixctl::{asked, theirs};

pub(crate) const RULES: &[Rule] = rules![
    stations_put_in_by_hand_stay_where_they_are,
    frames_for_bridges_end_there,
    tags_for_priorities_leave_where_they_are_wanted,
];

/// How many hosts each has.
const HOSTS: u8 = 4;

/// Where frames of these tests come from, as their text begins; others are the hosts' own.
const OURS: &str = "src=02:00:00:00:01:";

/// What ends a round: a rule sends it to everybody, behind all that was sent before it.
const LAST: &str = "eth(dst=02:00:00:00:02:ff,src=02:00:00:00:02:fe,type=0x88b6)/data(50)";

/// That rule.
const LAST_RULE: &str = "table=0,priority=65535,dl_type=0x88b6,actions=all";

/// Two places with the same cables.
pub(crate) struct Places<'g> {
    pub(crate) ours: Rig<'g>,
    pub(crate) other: Rig<'g>,
}

impl<'g> Places<'g> {
    pub(crate) fn new(ground: &'g Ground) -> Result<Self, Failure> {
        Ok(Self {
            ours: Rig::new(ground, HOSTS)?,
            other: Rig::new(ground, HOSTS)?,
        })
    }
}

/// A switch of each kind.
pub(crate) struct Both<'s, 'g> {
    ours: &'s Site<'s, 'g>,
    other: &'s Site<'s, 'g>,
    _daemon: Daemon<'s, 'g>,
    _theirs: Process,
}

impl<'s, 'g> Both<'s, 'g> {
    /// Starts them, each with a bridge `br0` that has all hosts at ports of their numbers.
    pub(crate) fn start(ours: &'s Site<'s, 'g>, other: &'s Site<'s, 'g>) -> Result<Self, Failure> {
        let (_daemon, _theirs) = (ours.daemon()?, theirs(other, "")?);
        let both = Self {
            ours,
            other,
            _daemon,
            _theirs,
        };
        both.vsctl("add-br br0 -- set Bridge br0 datapath_type=netdev")?;
        for number in 1..=HOSTS {
            both.vsctl(&format!(
                "add-port br0 p{number} -- set Interface p{number} ofport_request={number}"
            ))?;
        }
        for site in both.sites() {
            site.tool(&format!("ovs-ofctl add-flow br0 {LAST_RULE}"))?;
        }
        Ok(both)
    }

    pub(crate) const fn sites(&self) -> [&'s Site<'s, 'g>; 2] {
        [self.ours, self.other]
    }

    pub(crate) fn vsctl(&self, words: &str) -> Result<(), Failure> {
        self.sites()
            .iter()
            .try_for_each(|site| site.vsctl(words).map(drop))
    }

    /// What both answer to this.
    #[track_caller]
    pub(crate) fn asked(&self, words: &str) -> Result<String, Failure> {
        let (ours, other) = (asked(self.ours, words)?, asked(self.other, words)?);
        assert_eq!(ours, other, "{words}");
        Ok(ours)
    }

    /// What of `stacks`, sent by a host, comes to all of them.
    #[track_caller]
    pub(crate) fn come(&self, from: usize, stacks: &[&str]) -> Result<Vec<String>, Failure> {
        self.bytes_come(from, &frames(stacks))
    }

    /// What of these frames, sent by a host, comes to all of them: a line for each that comes,
    /// with the number of the host.
    #[track_caller]
    pub(crate) fn bytes_come(&self, from: usize, sent: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
        let [ours, other] = self.sites().map(|site| come(site.rig, from, sent));
        let (ours, other) = (ours?, other?);
        assert_eq!(ours, other, "ours, and Open vSwitch's");
        Ok(ours)
    }

    /// The hosts to which one frame comes that a host sends.
    #[track_caller]
    pub(crate) fn reached(&self, from: usize, stack: &str) -> Result<Vec<u8>, Failure> {
        let come = self.come(from, &[stack])?;
        let number = |line: String| line.as_bytes()[0] - b'0';
        Ok(come.into_iter().map(number).collect())
    }
}

/// What of these frames, sent by a host, comes to all other hosts of a place: lines as above.
pub(crate) fn come(rig: &Rig<'_>, from: usize, sent: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
    let others = (1..=usize::from(HOSTS)).filter(|number| *number != from);
    let eyes = others.map(|number| Ok((number, rig.host(number).eye()?)));
    let eyes: Vec<_> = eyes.collect::<Result<_, Failure>>()?;
    rig.host(from).send_bytes(sent)?;
    rig.host(from).send(&[LAST])?;
    let mut lines = Vec::new();
    for (number, mut eye) in eyes {
        loop {
            let frame = eye.next()?;
            let seen = Stack::dissect(&frame).to_string();
            if seen.contains("type=0x88b6") {
                break;
            }
            if seen.contains(OURS) {
                lines.push(format!("{number} {seen}"));
            }
        }
    }
    // Open vSwitch sends what goes by one flow together.
    lines.sort();
    Ok(lines)
}

fn stations_put_in_by_hand_stay_where_they_are(ground: &Ground) -> Outcome {
    let places = Places::new(ground)?;
    let (ours, other) = (
        Site::at(&places.ours, "ours")?,
        Site::at(&places.other, "theirs")?,
    );
    let both = Both::start(&ours, &other)?;
    let to = "eth(dst=02:00:00:00:01:77,src=02:00:00:00:01:01)/data(50)";
    let from = "eth(dst=02:00:00:00:01:01,src=02:00:00:00:01:77)/data(50)";
    assert_eq!(both.reached(1, to)?, [2, 3, 4], "nobody knows it");
    both.asked("fdb/add br0 p3 0 02:00:00:00:01:77")?;
    assert_eq!(both.reached(1, to)?, [3]);
    // It stays there, wherever frames of its address come from, and whatever is flushed.
    assert_eq!(both.reached(2, from)?, [1]);
    both.asked("fdb/flush br0")?;
    assert_eq!(both.reached(1, to)?, [3]);
    let by_hand = |site| {
        let shown = asked(site, "fdb/show br0")?;
        let lines = shown.lines().filter(|line| line.ends_with("static"));
        Ok::<_, Failure>(lines.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(by_hand(&ours)?, ["    3     0  02:00:00:00:01:77  static"]);
    assert_eq!(by_hand(&ours)?, by_hand(&other)?);
    // It goes with its port's VLAN, or by hand.
    both.vsctl("set Port p3 tag=7")?;
    assert_eq!(by_hand(&ours)?, by_hand(&other)?);
    assert!(by_hand(&ours)?.is_empty());
    both.asked("fdb/add br0 p4 0 02:00:00:00:01:77")?;
    assert_eq!(both.reached(1, to)?, [4]);
    both.asked("fdb/del br0 0 02:00:00:00:01:77")?;
    assert_eq!(both.reached(1, to)?, [2, 4]);
    // What cannot be is said.
    for words in [
        "fdb/add br0 p9 0 02:00:00:00:01:77",
        "fdb/add br0 p1 x 02:00:00:00:01:77",
        "fdb/add br0 p1 4096 02:00:00:00:01:77",
        "fdb/add br0 p1 0 01:00:5e:00:00:01",
    ] {
        assert_ne!(asked(&ours, words)?, "", "{words}");
    }
    Ok(())
}

fn frames_for_bridges_end_there(ground: &Ground) -> Outcome {
    let places = Places::new(ground)?;
    let (ours, other) = (
        Site::at(&places.ours, "ours")?,
        Site::at(&places.other, "theirs")?,
    );
    let both = Both::start(&ours, &other)?;
    let addresses = [
        ("01:80:c2:00:00:00", true),
        ("01:80:c2:00:00:0f", true),
        ("01:80:c2:00:00:10", false),
        ("01:00:0c:00:00:00", true),
        ("01:00:0c:cc:cc:c0", true),
        ("01:00:0c:cc:cc:c7", true),
        ("01:00:0c:cc:cc:c8", false),
        ("01:00:0c:cc:cc:cc", true),
        ("01:00:0c:cc:cc:cd", true),
        ("01:00:0c:cc:cc:ce", false),
        ("01:00:0c:cd:cd:cd", true),
        ("00:e0:2b:00:00:00", true),
        ("00:e0:2b:00:00:04", true),
        ("00:e0:2b:00:00:05", false),
        ("00:e0:2b:00:00:06", true),
    ];
    let frame = |dst| format!("eth(dst={dst},src=02:00:00:00:01:01)/data(50)");
    for (dst, ends) in addresses {
        let expected: &[u8] = if ends { &[] } else { &[2, 3, 4] };
        assert_eq!(both.reached(1, &frame(dst))?, expected, "{dst}");
    }
    // They teach nothing either.
    both.asked("fdb/flush br0")?;
    both.reached(1, &frame("01:00:0c:cc:cc:cd"))?;
    let to = "eth(dst=02:00:00:00:01:01,src=02:00:00:00:01:02)/data(50)";
    assert_eq!(both.reached(2, to)?, [1, 3, 4]);
    both.vsctl("set Bridge br0 other_config:forward-bpdu=true")?;
    for (dst, _) in addresses {
        assert_eq!(both.reached(1, &frame(dst))?, [2, 3, 4], "{dst}");
    }
    Ok(())
}

fn tags_for_priorities_leave_where_they_are_wanted(ground: &Ground) -> Outcome {
    let places = Places::new(ground)?;
    let (ours, other) = (
        Site::at(&places.ours, "ours")?,
        Site::at(&places.other, "theirs")?,
    );
    let both = Both::start(&ours, &other)?;
    let frame = |tag| format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){tag}/data(50)");
    let tags = [
        "",
        "/vlan(vid=0)",
        "/vlan(pcp=3,vid=0)",
        "/vlan(vid=5)",
        "/vlan(pcp=3,vid=5)",
    ];
    let stacks = tags.map(frame);
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    // Ports of which nothing is said.
    let come = both.come(1, &stacks)?;
    let tagged = come.iter().filter(|line| line.starts_with('2'));
    let tagged = tagged.filter(|line| line.contains("vlan")).count();
    assert_eq!(
        tagged, 3,
        "{come:?}: one of VLAN 0 without a priority has no tag"
    );
    // What there is else.
    let modes = [
        "tag=0 vlan_mode=access",
        "tag=5 vlan_mode=access",
        "tag=0 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-tagged",
        "trunks=0,5",
    ];
    for wanted in ["never", "if-nonzero", "always"] {
        for three in modes.chunks(3) {
            for (mode, port) in three.iter().zip(2..) {
                both.vsctl(&format!(
                    "clear Port p{port} tag trunks vlan_mode -- set Port p{port} {mode} \
                     other_config:priority-tags={wanted}"
                ))?;
            }
            both.come(1, &stacks)?;
            both.come(2, &stacks)?;
        }
    }
    Ok(())
}
