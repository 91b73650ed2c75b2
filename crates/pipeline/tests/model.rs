//! The tables compared with a simpler model: a list of rules, and matches of two fields with a
//! meaning of their own. After each of random flow-mods, packets and pauses, both must be equal.

use std::time::Duration;

use base::{Cookie, Instant, PortNo, TableId};
use flow::{
    Action, Consistency, Field, FlowFlags, FlowMod, FlowModCommand, FlowRemovedReason,
    Instructions, Match, Refusal,
};
use packet::build::Stack;
use packet::{Frame, Pool};
use pipeline::{
    Changes, Destination, InputFrame, Interpreter, Limits, Pipeline, Rule, Trace, Verdict,
};
use proptest::prelude::*;
use proptest::sample::select;

/// The network part of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkMatch {
    Any,
    Arp,
    Ip,
    /// IP to 10.0.0.0 plus the shifted byte, with this prefix length.
    Net(u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModelMatch {
    in_port: Option<u32>,
    network: NetworkMatch,
}

/// A packet as the matches see it: ingress port, and destination if it is IP.
#[derive(Clone, Copy, Debug)]
struct ModelPacket {
    in_port: u32,
    dst: Option<u32>,
}

fn same_bits(a: u32, b: u32, bits: u32) -> bool {
    (0..bits).all(|bit| a << bit >> 31 == b << bit >> 31)
}

impl ModelMatch {
    fn accepts(self, frame: ModelPacket) -> bool {
        let port = self.in_port.is_none_or(|port| port == frame.in_port);
        port && match (self.network, frame.dst) {
            (NetworkMatch::Any, _) | (NetworkMatch::Arp, None) | (NetworkMatch::Ip, Some(_)) => {
                true
            }
            (NetworkMatch::Net(net, bits), Some(dst)) => same_bits(net, dst, bits),
            _ => false,
        }
    }

    fn covers(self, other: Self) -> bool {
        let port = self.in_port.is_none() || self.in_port == other.in_port;
        port && match (self.network, other.network) {
            (NetworkMatch::Any, _)
            | (NetworkMatch::Ip, NetworkMatch::Ip | NetworkMatch::Net(..)) => true,
            (NetworkMatch::Net(a, bits), NetworkMatch::Net(b, more)) => {
                bits <= more && same_bits(a, b, bits)
            }
            (mine, theirs) => mine == theirs,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        let ports = self.in_port.zip(other.in_port);
        ports.is_none_or(|(a, b)| a == b)
            && match (self.network, other.network) {
                (NetworkMatch::Any, _) | (_, NetworkMatch::Any) => true,
                (NetworkMatch::Arp, NetworkMatch::Arp) => true,
                (NetworkMatch::Arp, _) | (_, NetworkMatch::Arp) => false,
                (NetworkMatch::Ip, _) | (_, NetworkMatch::Ip) => true,
                (NetworkMatch::Net(a, bits), NetworkMatch::Net(b, more)) => {
                    same_bits(a, b, bits.min(more))
                }
            }
    }

    fn matching(self) -> Match {
        let with = |m: Match, field, value| m.with(field, value).expect("legal");
        let mut m = Match::any();
        if let Some(port) = self.in_port {
            m = with(m, Field::InPort, port.into());
        }
        match self.network {
            NetworkMatch::Any => m,
            NetworkMatch::Arp => with(m, Field::EthType, 0x0806),
            NetworkMatch::Ip => with(m, Field::EthType, 0x0800),
            NetworkMatch::Net(net, bits) => {
                let mask = u32::MAX << (32 - bits);
                with(m, Field::EthType, 0x0800)
                    .with_masked(Field::Ipv4Dst, (net & mask).into(), mask.into())
                    .expect("legal")
            }
        }
    }
}

#[derive(Clone, Debug)]
struct ModelRule {
    table: u8,
    priority: u16,
    wanted: ModelMatch,
    cookie: u64,
    out: u32,
    goto: bool,
    idle: u16,
    hard: u16,
    tells: bool,
    modified: Instant,
    used: Instant,
    packets: u64,
}

#[derive(Clone, Debug)]
struct Command {
    kind: FlowModCommand,
    table: u8,
    priority: u16,
    wanted: ModelMatch,
    cookie: u64,
    cookie_mask: u64,
    new_cookie: Option<u64>,
    out: u32,
    goto: bool,
    out_filter: Option<u32>,
    idle: u16,
    hard: u16,
    flags: FlowFlags,
}

#[derive(Clone, Debug)]
enum ModelInput {
    Change(Command),
    /// Flow-mods that are prefetched and then applied, except the first ones.
    Burst(Vec<Command>, usize),
    Frame(ModelPacket),
    Pause(u64),
}

const LIMITS: Limits = Limits {
    rules: 7,
    rules_per_table: 5,
    groups: 0,
    buckets: 0,
    meters: 0,
};

#[derive(Debug, Default)]
struct Model {
    rules: Vec<ModelRule>,
    now: Instant,
}

/// The compared facts of a removal: the rule, and the reason.
type ModelRemoval = (u8, u16, Match, FlowRemovedReason, u64);

impl Model {
    fn change(&mut self, command: &Command) -> Result<Vec<ModelRemoval>, Refusal> {
        use FlowModCommand as C;
        let deletes = matches!(command.kind, C::Delete | C::DeleteStrict);
        let modifies = matches!(command.kind, C::Modify | C::ModifyStrict);
        let adds = modifies && command.new_cookie.is_some() && command.cookie_mask == 0;
        if command.table == 255 && !deletes && !modifies {
            return Err(Refusal::FlowModBadTable);
        }
        if !deletes && command.goto && command.table == 1 {
            return Err(Refusal::InstructionBadTable);
        }
        if command.kind == C::Add {
            return self.add(command, command.table, command.cookie);
        }
        let strict = matches!(command.kind, C::ModifyStrict | C::DeleteStrict);
        let meant = |rule: &ModelRule| {
            (command.table == 255 || command.table == rule.table)
                && (rule.cookie ^ command.cookie) & command.cookie_mask == 0
                && if strict {
                    rule.wanted == command.wanted && rule.priority == command.priority
                } else {
                    command.wanted.covers(rule.wanted)
                }
        };
        if deletes {
            let out = |rule: &ModelRule| command.out_filter.is_none_or(|out| out == rule.out);
            let (gone, kept) = self
                .rules
                .drain(..)
                .partition(|rule| meant(rule) && out(rule));
            self.rules = kept;
            return Ok(told(&gone, FlowRemovedReason::Delete));
        }
        if !self.rules.iter().any(meant) {
            let table = if command.table == 255 {
                0
            } else {
                command.table
            };
            let cookie = command.new_cookie.unwrap_or(0);
            return if adds {
                self.add(command, table, cookie)
            } else {
                Ok(Vec::new())
            };
        }
        if command.goto && self.rules.iter().any(|rule| meant(rule) && rule.table == 1) {
            return Err(Refusal::InstructionBadTable);
        }
        for rule in self.rules.iter_mut().filter(|rule| meant(rule)) {
            (rule.out, rule.goto) = (command.out, command.goto);
            rule.cookie = command.new_cookie.unwrap_or(rule.cookie);
            rule.modified = self.now;
            if command.flags.contains(FlowFlags::RESET_COUNTS) {
                rule.packets = 0;
            }
        }
        Ok(Vec::new())
    }

    fn add(
        &mut self,
        command: &Command,
        table: u8,
        cookie: u64,
    ) -> Result<Vec<ModelRemoval>, Refusal> {
        let in_table = self.rules.iter().filter(|rule| rule.table == table);
        let rival = |rule: &&ModelRule| {
            rule.priority == command.priority && rule.wanted.overlaps(command.wanted)
        };
        if command.flags.contains(FlowFlags::CHECK_OVERLAP) && in_table.clone().any(|r| rival(&r)) {
            return Err(Refusal::FlowModOverlap);
        }
        let same = |rule: &ModelRule| {
            rule.table == table
                && rule.priority == command.priority
                && rule.wanted == command.wanted
        };
        let old = self.rules.iter().position(same);
        let full = self.rules.len() >= LIMITS.rules || in_table.count() >= LIMITS.rules_per_table;
        if old.is_none() && full {
            return Err(Refusal::FlowModTableFull);
        }
        let old = old.map(|index| self.rules.remove(index));
        let kept = old.filter(|_| !command.flags.contains(FlowFlags::RESET_COUNTS));
        self.rules.push(ModelRule {
            table,
            priority: command.priority,
            wanted: command.wanted,
            cookie,
            out: command.out,
            goto: command.goto,
            idle: command.idle,
            hard: command.hard,
            tells: command.flags.contains(FlowFlags::SEND_FLOW_REMOVED),
            modified: self.now,
            used: self.now,
            packets: kept.map_or(0, |old| old.packets),
        });
        Ok(Vec::new())
    }

    fn pause(&mut self, seconds: u64) -> Vec<ModelRemoval> {
        self.now += Duration::from_secs(seconds);
        let now = self.now;
        let over = |since: Instant, timeout: u16| {
            timeout > 0 && now >= since + Duration::from_secs(timeout.into())
        };
        let (hard, kept): (Vec<_>, _) =
            self.rules.drain(..).partition(|r| over(r.modified, r.hard));
        let (idle, kept): (Vec<_>, _) = kept
            .into_iter()
            .partition(|r: &ModelRule| over(r.used, r.idle));
        self.rules = kept;
        let mut gone = told(&hard, FlowRemovedReason::HardTimeout);
        gone.extend(told(&idle, FlowRemovedReason::IdleTimeout));
        gone
    }

    /// Returns the rules that may apply: those that match with the highest priority.
    fn candidates(&self, table: u8, frame: ModelPacket) -> Vec<usize> {
        let matching = |rule: &ModelRule| rule.table == table && rule.wanted.accepts(frame);
        let best = self
            .rules
            .iter()
            .filter(|r| matching(r))
            .map(|r| r.priority)
            .max();
        let rules = self.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| matching(rule) && Some(rule.priority) == best)
            .map(|(index, _)| index)
            .collect()
    }
}

fn told(rules: &[ModelRule], reason: FlowRemovedReason) -> Vec<ModelRemoval> {
    let tells = rules.iter().filter(|rule| rule.tells);
    tells
        .map(|rule| {
            (
                rule.table,
                rule.priority,
                rule.wanted.matching(),
                reason,
                rule.packets,
            )
        })
        .collect()
}

fn heard(changes: &Changes) -> Vec<ModelRemoval> {
    let events = changes
        .removed
        .iter()
        .filter_map(pipeline::Removal::flow_removed);
    events
        .map(|e| (e.table.0, e.priority, e.matching, e.reason, e.packets))
        .collect()
}

/// Records the matching rules.
#[derive(Default)]
struct LookupRecorder(Vec<(u8, Option<(u16, Match)>)>);

impl Trace for LookupRecorder {
    fn on_lookup(&mut self, table: TableId, found: Option<&Rule>) {
        let rule = found.map(|rule| (rule.priority(), rule.matching().clone()));
        self.0.push((table.0, rule));
    }
}

fn flow_mod(command: &Command) -> FlowMod {
    let instructions = Instructions {
        goto: command.goto.then_some(TableId(1)),
        ..Instructions::apply(vec![Action::output(PortNo(command.out))])
    };
    let base = FlowMod::new(
        command.kind,
        command.priority,
        command.wanted.matching(),
        instructions,
    );
    FlowMod {
        table: TableId(command.table),
        cookie: Cookie(command.cookie),
        cookie_mask: command.cookie_mask,
        new_cookie: command.new_cookie.map(Cookie),
        idle_timeout_s: command.idle,
        hard_timeout_s: command.hard,
        out_port: command.out_filter.map_or(PortNo::ANY, PortNo),
        flags: command.flags,
        consistency: Consistency::Required,
        ..base
    }
}

fn frame(sent: ModelPacket) -> Frame {
    let text = match sent.dst {
        Some(dst) => format!("eth / ipv4(dst={}) / udp", std::net::Ipv4Addr::from(dst)),
        None => "eth / arp".to_owned(),
    };
    text.parse::<Stack>().expect("a stack").build()
}

struct Both {
    model: Model,
    pipeline: Pipeline,
    interpreter: Interpreter,
    pool: Pool,
    verdict: Verdict,
}

impl Both {
    fn new() -> Self {
        Self {
            model: Model::default(),
            pipeline: Pipeline::new(LIMITS, 1),
            interpreter: Interpreter::new(0),
            pool: Pool::new(8),
            verdict: Verdict::new(),
        }
    }

    fn step(&mut self, step: &ModelInput) -> Result<(), TestCaseError> {
        match step {
            ModelInput::Change(command) => self.change(command)?,
            ModelInput::Burst(commands, but) => {
                let flow_mods: Vec<_> = commands.iter().map(flow_mod).collect();
                self.pipeline.prefetch(flow_mods.iter());
                for command in commands.iter().skip(*but) {
                    self.change(command)?;
                }
            }
            ModelInput::Pause(seconds) => {
                let wanted = self.model.pause(*seconds);
                let happened = heard(&self.pipeline.expire(self.model.now));
                prop_assert_eq!(sorted(Ok(happened)), sorted(Ok(wanted)));
                let next = self.pipeline.next_expiry();
                prop_assert!(next.is_none_or(|next| next > self.model.now));
            }
            ModelInput::Frame(sent) => self.send(*sent)?,
        }
        self.compare()
    }

    fn change(&mut self, command: &Command) -> Result<(), TestCaseError> {
        let wanted = self.model.change(command);
        let changes = self.pipeline.flow_mod(&flow_mod(command), self.model.now);
        let happened = changes.map(|changes| heard(&changes));
        prop_assert_eq!(sorted(happened), sorted(wanted));
        Ok(())
    }

    fn send(&mut self, sent: ModelPacket) -> Result<(), TestCaseError> {
        let mut found = LookupRecorder::default();
        let arrival = InputFrame {
            frame: self
                .pool
                .duplicate(&frame(sent))
                .expect("all buffers are back"),
            in_port: PortNo(sent.in_port),
            now: self.model.now,
        };
        let (pool, verdict) = (&mut self.pool, &mut self.verdict);
        self.interpreter
            .run(&self.pipeline, arrival, pool, &mut found, verdict);
        let sent_to = verdict.egress.iter().map(|egress| egress.to.clone());
        let sent_to: Vec<_> = sent_to.collect();
        verdict.frames.drain(..).for_each(|frame| pool.put(frame));
        let mut wanted = Vec::new();
        let mut table = Some(0);
        for (asked, rule) in found.0 {
            prop_assert_eq!(Some(asked), table);
            let candidates = self.model.candidates(asked, sent);
            let Some((priority, matching)) = rule else {
                prop_assert!(candidates.is_empty());
                table = None;
                continue;
            };
            let rules = &mut self.model.rules;
            let chosen = candidates.into_iter().find(|index| {
                rules[*index].priority == priority && rules[*index].wanted.matching() == matching
            });
            prop_assert!(chosen.is_some(), "no candidate was chosen");
            let rule = &mut rules[chosen.unwrap_or_default()];
            rule.packets += 1;
            rule.used = self.model.now;
            if rule.out != sent.in_port {
                wanted.push(Destination::Port(PortNo(rule.out)));
            }
            table = rule.goto.then_some(1);
        }
        prop_assert_eq!(table, None, "the walk ended too early");
        prop_assert_eq!(sent_to, wanted);
        Ok(())
    }

    /// Checks that both have the same rules with the same counters.
    fn compare(&self) -> Result<(), TestCaseError> {
        let line = |table: u8, priority: u16, matching: &Match, rest: &[u64]| {
            format!("{table} {priority} {matching} {rest:?}")
        };
        let mut wanted: Vec<_> = self
            .model
            .rules
            .iter()
            .map(|r| {
                let rest = [r.cookie, r.out.into(), r.goto.into(), r.packets];
                line(r.table, r.priority, &r.wanted.matching(), &rest)
            })
            .collect();
        let mut happened: Vec<_> = self
            .pipeline
            .rules(TableId::ALL)
            .map(|rule| {
                let out = (1..4).find(|port| rule.outputs_to(PortNo(*port)));
                let goto = rule.instructions.goto.is_some();
                let packets = rule.counters.totals().packets;
                let rest = [rule.cookie.0, out.unwrap_or(0).into(), goto.into(), packets];
                line(rule.table().0, rule.priority(), rule.matching(), &rest)
            })
            .collect();
        wanted.sort();
        happened.sort();
        prop_assert_eq!(happened, wanted);
        prop_assert_eq!(self.pipeline.len(), self.model.rules.len());
        Ok(())
    }
}

fn sorted(gone: Result<Vec<ModelRemoval>, Refusal>) -> Result<Vec<String>, Refusal> {
    gone.map(|mut gone| {
        gone.sort();
        gone.iter().map(|gone| format!("{gone:?}")).collect()
    })
}

fn commands() -> impl Strategy<Value = Command> {
    use FlowModCommand as C;
    let network = select(vec![
        NetworkMatch::Any,
        NetworkMatch::Arp,
        NetworkMatch::Ip,
        NetworkMatch::Net(0x0a00_0000, 8),
        NetworkMatch::Net(0x0a01_0000, 16),
        NetworkMatch::Net(0x0a01_0203, 32),
        NetworkMatch::Net(0x0b00_0000, 8),
    ]);
    let wanted = (select(vec![None, None, Some(1), Some(2)]), network);
    let wanted = wanted.prop_map(|(in_port, network)| ModelMatch { in_port, network });
    let kind = select(vec![
        C::Add,
        C::Add,
        C::Add,
        C::Modify,
        C::ModifyStrict,
        C::Delete,
        C::DeleteStrict,
    ]);
    let place = (select(vec![0_u8, 0, 1, 255]), 1..3_u16, wanted);
    let cookies = (
        0..3_u64,
        select(vec![0_u64, 0, 3]),
        select(vec![None, None, Some(1), Some(2)]),
    );
    let outs = (
        1..4_u32,
        any::<bool>(),
        select(vec![None, None, Some(1), Some(2)]),
    );
    let timeouts = (select(vec![0_u16, 0, 1, 3]), select(vec![0_u16, 0, 2, 5]));
    let flags = select(vec![0_u16, 1, 1, 2, 3, 4, 5]).prop_map(FlowFlags);
    (kind, place, cookies, outs, timeouts, flags).prop_map(
        |(kind, (table, priority, wanted), cookies, outs, (idle, hard), flags)| Command {
            kind,
            table,
            priority,
            wanted,
            cookie: cookies.0,
            cookie_mask: cookies.1,
            new_cookie: cookies.2,
            out: outs.0,
            goto: outs.1,
            out_filter: outs.2,
            idle,
            hard,
            flags,
        },
    )
}

fn steps() -> impl Strategy<Value = ModelInput> {
    let dst = select(vec![
        None,
        Some(0x0a01_0203),
        Some(0x0a01_0909),
        Some(0x0a09_0909),
        Some(0x0c00_0001),
    ]);
    let frame =
        (1..4_u32, dst).prop_map(|(in_port, dst)| ModelInput::Frame(ModelPacket { in_port, dst }));
    let burst = (proptest::collection::vec(commands(), 1..5), 0..3_usize);
    prop_oneof![
        4 => commands().prop_map(ModelInput::Change),
        2 => burst.prop_map(|(commands, but)| ModelInput::Burst(commands, but)),
        3 => frame,
        1 => (1..3_u64).prop_map(ModelInput::Pause),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn tables_behave_like_a_list(steps in proptest::collection::vec(steps(), 1..40)) {
        let mut both = Both::new();
        for number in 1..4 {
            both.pipeline.set_port(&port(number));
        }
        for step in &steps {
            both.step(step)?;
        }
    }
}

fn port(number: u32) -> flow::PortDesc {
    flow::PortDesc {
        number: PortNo(number),
        hw_addr: packet::MacAddr::default(),
        name: String::new(),
        config: flow::PortConfig::default(),
        state: flow::PortState::default(),
        current: flow::PortFeatures::default(),
        advertised: flow::PortFeatures::default(),
        supported: flow::PortFeatures::default(),
        peer: flow::PortFeatures::default(),
        speed_kbps: 0,
        speed_kbps_max: 0,
    }
}
