//! Storms of frames for controllers: what they leave of the others' way, and that each
//! frame of them is accounted for.

use openflow::{Message, Version};
use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Desk;
use crate::replay::{capture, packets};
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    a_storm_of_misses_leaves_other_frames_their_way_and_each_is_counted,
    a_controllers_rate_is_kept_and_can_be_changed,
];

/// Frames that cross while the storm goes on, so many at a time.
const ROUNDS: usize = 100;
const FRAMES: usize = 20;

/// Memory brings more frames than any wire, none of which has a rule: as many go to the
/// controller as their port may send.
fn a_storm_of_misses_leaves_other_frames_their_way_and_each_is_counted(ground: &Ground) -> Outcome {
    let file = ground.file("storm.pcap");
    let storm = capture(&["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"]);
    std::fs::write(&file, storm).map_err(Failure::to("write a file of frames"))?;
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let switch = rig.start(&format!(
        "--bridge br0 --fail-mode secure --packet-in-rate 100:25 --controller {} \
         --port p1 --port p2 --port replay:m3,{}",
        desk.target(),
        file.display()
    ))?;
    let mut peer = desk.meet(Version::V13)?;
    peer.add("priority=1,in_port=1,actions=output:2")?;
    peer.add("priority=1,in_port=2,actions=drop")?;
    peer.add("cookie=7,priority=0,actions=controller:64")?;
    peer.barrier();
    let mut eye = rig.host(2).eye()?;
    for round in 0..ROUNDS {
        let frame = format!("eth / ipv4(id={round}) / udp");
        rig.host(1).send(&[frame.as_str(); FRAMES])?;
        (0..FRAMES).for_each(|_| eye.sees(&frame));
    }
    switch.ofctl("mod-port br0 m3 down")?;
    let met = settled(&switch)?;
    let heard = peer.heard();
    let heard = heard
        .iter()
        .filter(|message| matches!(message, Message::PacketIn(_)));
    let policed = switch.counter("br0 port 3 packet_in_policed ")?;
    let told = switch.counter("br0 port 3 packet_in_told ")?;
    assert!(told >= 25 && policed > 0, "{told} told, {policed} not");
    let others = ["worker packet_in_no_room ", "worker no_buffer "];
    let others = others.map(|name| switch.counter(name));
    let others: u64 = others.into_iter().sum::<Result<_, _>>()?;
    assert_eq!(told + policed + others, met, "{others} for want of room");
    let unheard = switch.counter("control unasked_dropped ")?;
    assert_eq!(heard.count() as u64 + unheard, told);
    Ok(())
}

/// How many frames met no rule, when no more of them come.
fn settled(switch: &Switch<'_>) -> Result<u64, Failure> {
    let met = |switch: &Switch<'_>| {
        let told = switch.ofctl("dump-flows br0 cookie=7/-1")?;
        Ok::<_, Failure>(packets(&told, "n_packets="))
    };
    switch.wait_until(
        "the storm to end",
        |switch| Ok(met(switch)? == met(switch)?),
    )?;
    met(switch)
}

/// Of many frames at once each controller is sent its burst; of the rest there is a count.
fn a_controllers_rate_is_kept_and_can_be_changed(ground: &Ground) -> Outcome {
    const MANY: usize = 2_000;
    let rig = Rig::new(ground, 1)?;
    let desk = Desk::open(ground)?;
    let file = ground.file("switch.toml");
    let configure = |rates: &str| {
        let text = format!(
            "[[bridge]]\nname='br0'\nports=['p1']\nfail-mode='secure'\n\
             controllers=['{}']\npacket-in-rate='none'\n{rates}",
            desk.target()
        );
        std::fs::write(&file, text).map_err(Failure::to("write a configuration"))
    };
    configure("controller-rate-limit=100\ncontroller-burst-limit=25")?;
    let switch = rig.start(&format!("--config {}", file.display()))?;
    let mut peer = desk.meet(Version::V13)?;
    peer.add("priority=1,udp,actions=controller")?;
    peer.add("priority=0,actions=drop")?;
    peer.barrier();
    let frames = [["eth / ipv4 / udp"; 50].as_slice(); MANY / 50];
    let mut sent = 0;
    let mut storm = |switch: &Switch<'_>| {
        for part in frames {
            rig.host(1).send(part)?;
        }
        sent += MANY as u64;
        switch.wait_until("all frames to be counted", |switch| {
            let names = [
                "br0 port 1 packet_in_told ",
                "worker packet_in_no_room ",
                "br0 port 1 rx_overrun ",
            ];
            let counts = names.map(|name| switch.counter(name));
            Ok(counts.into_iter().sum::<Result<u64, _>>()? == sent)
        })
    };
    storm(&switch)?;
    let heard = peer.heard().len() as u64;
    let limited = switch.counter("br0 packet_in_limited ")?;
    let told = switch.counter("br0 port 1 packet_in_told ")?;
    let dropped = switch.counter("control unasked_dropped ")?;
    assert!(heard >= 25 && limited > 0, "{heard} heard, {limited} not");
    assert_eq!(heard + limited + dropped, told);
    configure("")?;
    switch.process.hang_up()?;
    let wanted = "br0: packet-ins by port none, by controller none";
    switch.wait_until("the new configuration", |switch| {
        Ok(switch.log()?.contains(wanted))
    })?;
    storm(&switch)?;
    peer.barrier();
    assert_eq!(switch.counter("br0 packet_in_limited ")?, limited);
    Ok(())
}
