//! Borrowed cards, simulated by ends of veth pairs.

use super::*;
use std::os::fd::AsRawFd;

/// A card's namespace, the peer of the card, and its name.
struct CardFixture {
    home: Namespace,
    name: NicName,
    _far: Namespace,
}

/// A card that is up, with a distinct MTU; `None` without root.
fn card_fixture() -> Option<CardFixture> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root makes namespaces");
        return None;
    }
    let (home, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    home.join("nic0", &far, "port0").unwrap();
    home.set_mac("nic0", [2, 0, 0, 0, 9, 9]).unwrap();
    home.set_mtu("nic0", 1_400).unwrap();
    home.set_up("nic0").unwrap();
    let path = format!("/proc/self/fd/{}", home.as_fd().as_raw_fd());
    let name = format!("{path}:nic0").parse().unwrap();
    Some(CardFixture {
        home,
        name,
        _far: far,
    })
}

#[test]
fn card_names_parse_with_and_without_a_namespace() {
    let name: NicName = "enp3s0f0".parse().unwrap();
    assert_eq!(
        (name.namespace.clone(), name.to_string()),
        (None, "enp3s0f0".to_owned())
    );
    let name: NicName = "lab:eth1".parse().unwrap();
    assert_eq!(name.namespace, Some("/run/netns/lab".into()));
    assert_eq!(name.to_string(), "lab:eth1");
    for bad in [
        "",
        "a b",
        "lab:",
        ":eth1",
        "a/b:eth1",
        "a-name-that-is-too-long",
    ] {
        assert!(bad.parse::<NicName>().is_err(), "{bad}");
    }
}

#[test]
fn card_is_returned_in_its_original_state() {
    let Some(card_fixture) = card_fixture() else {
        return;
    };
    let before = NicState::of(&card_fixture.name).unwrap();
    assert_eq!((before.mtu, before.up, before.sums), (1_400, true, true));
    let host = Namespace::new().unwrap();
    let nic = Nic::lend(&card_fixture.name, &host).unwrap();
    assert!(card_fixture.home.mac("nic0").is_err(), "it is lent");
    host.set_mtu("nic0", 9_000).unwrap();
    host.set_offload("nic0", DeviceOffload::TxChecksum, false)
        .unwrap();
    host.set_up("nic0").unwrap();
    drop(nic);
    assert_eq!(NicState::of(&card_fixture.name).unwrap(), before);
    assert!(host.mac("nic0").is_err());
    assert_eq!(before.recover().unwrap(), NicRecovery::Untouched);
}

#[test]
fn card_with_an_address_is_not_borrowed() {
    let Some(card_fixture) = card_fixture() else {
        return;
    };
    let address = [192, 0, 2, 7].into();
    card_fixture._far.set_up("port0").unwrap();
    card_fixture.home.add_address("nic0", address, 24).unwrap();
    let refused = Nic::lend(&card_fixture.name, &Namespace::new().unwrap()).unwrap_err();
    assert!(
        refused.to_string().contains("must have no address"),
        "{refused}"
    );
    assert!(card_fixture.home.mac("nic0").is_ok());
}

#[test]
fn card_in_the_initial_namespace_is_restored() {
    let Some(card_fixture) = card_fixture() else {
        return;
    };
    let before = NicState::of(&card_fixture.name).unwrap();
    // The kernel would also move the card down, and rename it if its name exists there.
    let first = Namespace::new().unwrap();
    first.join("nic0", &first, "another").unwrap();
    card_fixture.home.set_down("nic0").unwrap();
    card_fixture.home.rename("nic0", "dev7").unwrap();
    card_fixture.home.hand_over("dev7", &first).unwrap();
    let found = first.run(|| before.recover()).unwrap().unwrap();
    assert_eq!(found, NicRecovery::Restored);
    assert_eq!(NicState::of(&card_fixture.name).unwrap(), before);
    assert!(first.mac("nic0").is_ok(), "who has its name is not it");

    card_fixture.home.set_mtu("nic0", 1_500).unwrap();
    assert_eq!(before.recover().unwrap(), NicRecovery::Restored);
    card_fixture.home.remove("nic0").unwrap();
    assert_eq!(
        first.run(|| before.recover()).unwrap().unwrap(),
        NicRecovery::Missing
    );
}
