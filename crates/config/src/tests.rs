//! Tests of parsing, and of the error messages for invalid input.

use std::str::FromStr;

use super::*;

fn error_of<T: FromStr<Err = ConfigError> + std::fmt::Debug>(text: &str) -> String {
    text.parse::<T>().expect_err(text).to_string()
}

#[test]
fn port_text_round_trips_with_and_without_a_number() {
    for text in [
        "eth1",
        "eth2=7",
        "tap:vm1",
        "tap:vm1=3",
        "xdp:eth1",
        "xdp:eth1=9",
        "xdp:eth1,native,copy=9",
        "xdp:eth1,generic,busy-poll",
        "xdp:eth1,zero-copy,busy-poll=3",
        "dpdk:net_null0",
        "dpdk:0000:3b:00.0=2",
        "dpdk:net_pcap0=3,rx_pcap=a=b.pcap,infinite_rx=1,buffers=200000,mtu=9000",
        "replay:p1",
        "replay:p1,traces/many.pcap=4",
    ] {
        assert_eq!(text.parse::<PortSpec>().expect("legal").to_string(), text);
    }
    assert_eq!(
        error_of::<PortSpec>("xdp:eth1,fast"),
        "--port: 'xdp:eth1,fast': 'fast' is not a mode: use native, generic, copy, zero-copy, busy-poll"
    );
    assert_eq!(
        error_of::<PortSpec>("xdp:eth1,native,generic"),
        "--port: 'xdp:eth1,native,generic': 'generic' contradicts or repeats an earlier mode"
    );
    for words in ["copy,zero-copy", "zero-copy,generic", "generic,zero-copy"] {
        let error = error_of::<PortSpec>(&format!("xdp:eth1,{words}"));
        assert!(error.contains("contradicts or repeats"), "{error}");
    }
    assert_eq!(
        error_of::<PortSpec>("eth1=0"),
        "--port: 'eth1=0': '0' is not a port number: use 1 to 65279, as in eth1=7"
    );
    assert!(error_of::<PortSpec>("pcap:x").contains("is not a kind of port"));
    assert!(error_of::<PortSpec>("dpdk:x=0,y=1").contains("'0' is not a port number"));
    assert_eq!(
        error_of::<PortSpec>("dpdk:net_null0,mtu=1"),
        "--port: 'mtu=1': mtu takes a number from 68 to 65000"
    );
    assert!(error_of::<PortSpec>("a-name-too-long-for-linux").contains("longer than the 15 bytes"));
    assert!(error_of::<PortSpec>("").contains("needs a name"));
}

#[test]
fn port_numbers_are_the_requested_ones_or_the_lowest_free() {
    let ports = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().expect("legal"))
            .collect::<Vec<PortSpec>>()
    };
    let numbers = number_ports(&ports(&["a", "b=1", "c", "d=3", "e"])).expect("no clash");
    assert_eq!(
        numbers.iter().map(|number| number.0).collect::<Vec<_>>(),
        [2, 1, 4, 3, 5]
    );
    let clash = number_ports(&ports(&["a=2", "b=2"])).expect_err("a clash");
    assert_eq!(
        clash.to_string(),
        "--port: number 2 is requested twice: give each port its own"
    );
}

#[test]
fn targets_parse_and_print_as_in_open_vswitch() {
    for (text, printed) in [
        ("tcp:127.0.0.1:6653", "tcp:127.0.0.1:6653"),
        ("tcp:127.0.0.1", "tcp:127.0.0.1:6653"),
        ("tcp:localhost:6633", "tcp:localhost:6633"),
        ("tcp:[::1]:6633", "tcp:[::1]:6633"),
        ("ssl:[::1]", "ssl:[::1]:6653"),
        ("unix:/tmp/c.sock", "unix:/tmp/c.sock"),
    ] {
        assert_eq!(
            text.parse::<ControllerTarget>().expect(text).to_string(),
            printed
        );
    }
    for (text, printed) in [
        ("ptcp:", "ptcp:6653:0.0.0.0"),
        ("ptcp:6654", "ptcp:6654:0.0.0.0"),
        ("ptcp:6654:127.0.0.1", "ptcp:6654:127.0.0.1"),
        ("ptcp:6654:[::1]", "ptcp:6654:[::1]"),
        ("pssl:6654:127.0.0.1", "pssl:6654:127.0.0.1"),
        ("punix:/tmp/l.sock", "punix:/tmp/l.sock"),
    ] {
        assert_eq!(
            text.parse::<ListenAddress>().expect(text).to_string(),
            printed
        );
    }
}

#[test]
fn target_errors_name_the_correct_form() {
    assert!(error_of::<ControllerTarget>("127.0.0.1:6653").contains("use tcp:HOST[:PORT]"));
    assert!(error_of::<ControllerTarget>("tcp:127.0.0.1:0").contains("no usable host and port"));
    assert!(error_of::<ControllerTarget>("ptcp:6653").contains("use --listen ptcp:6653"));
    assert!(error_of::<ListenAddress>("tcp:127.0.0.1").contains("use --controller tcp:127.0.0.1"));
    assert!(error_of::<ListenAddress>("ptcp:what").contains("use ptcp:[PORT][:ADDRESS]"));
}

#[test]
fn datapath_id_is_sixteen_digits_and_not_zero() {
    assert_eq!(parse_datapath_id("00000000000000ff"), Ok(DatapathId(255)));
    assert_eq!(parse_datapath_id("0xff"), Ok(DatapathId(255)));
    for text in ["ff", "0000000000000000", "0x", "00000000000000fg", ""] {
        assert!(parse_datapath_id(text).is_err(), "{text}");
    }
}

const TOML: &str = r#"
rundir = "/tmp/run"
cores = [1]

[[bridge]]
name = "br0"
ports = ["eth1", "eth2=7", "tap:vm1"]
controllers = ["tcp:127.0.0.1:6653"]
listen = ["ptcp:6654"]
fail-mode = "secure"
datapath-id = "0000000000000001"
protocols = ["OpenFlow10", "OpenFlow13"]

[[bridge]]
name = "br1"
"#;

#[test]
fn toml_file_has_the_meaning_of_the_command_line() {
    let config = Config::from_toml(TOML).expect("legal");
    assert_eq!(
        (config.rundir, config.cores),
        (Some("/tmp/run".into()), vec![1])
    );
    let mut expected = BridgeConfig::new("br0");
    expected.ports = ["eth1", "eth2=7", "tap:vm1"]
        .map(|text| text.parse().expect("legal"))
        .into();
    expected.controllers = vec!["tcp:127.0.0.1:6653".parse().expect("legal")];
    expected.listen = vec!["ptcp:6654".parse().expect("legal")];
    expected.fail_mode = FailMode::Secure;
    expected.datapath_id = Some(DatapathId(1));
    expected.protocols = "OpenFlow10,OpenFlow13".parse().expect("legal");
    assert_eq!(config.bridges, [expected, BridgeConfig::new("br1")]);
}

#[test]
fn file_without_bridge_is_named_in_the_error() {
    let path = std::env::temp_dir().join(format!("comporta-{}.toml", std::process::id()));
    std::fs::write(&path, "# All comments.\n").expect("a file can be written");
    let error = Config::from_file(&path).expect_err("no bridge").to_string();
    std::fs::remove_file(&path).expect("it is there");
    let name = path.display().to_string();
    assert!(
        error.contains(&name) && error.contains("has no bridge"),
        "{error}"
    );
    assert!(!error.contains("--bridge"), "{error}");
}

#[test]
fn conflicts_are_named_in_the_error() {
    let error = |text: &str| Config::from_toml(text).expect_err(text).to_string();
    assert!(error("").contains("--bridge: give at least one bridge"));
    assert!(error("[[bridge]]\nname='br0'\nports=['a','a']").contains("--port: 'a' is used twice"));
    assert!(
        error("[[bridge]]\nname='br0'\n[[bridge]]\nname='br0'")
            .contains("--bridge: 'br0' is used twice")
    );
    assert!(
        error("cores=[1,1]\n[[bridge]]\nname='br0'").contains("--cores: a core is given twice")
    );
    assert!(error("[[bridge]]\nname='br0'\nportz=[]").contains("unknown field `portz`"));
    assert!(error("[[bridge]]\nname='br0'\nfail-mode='open'").contains("standalone"));
    assert!(error("[[bridge]]\nname='br0'\nprotocols=['1.3']").contains("list of versions"));
    assert!(
        error("[[bridge]]\nname='br0'\ndatapath-id='1'").contains("sixteen hexadecimal digits")
    );
}

#[test]
fn auxiliary_count_has_a_limit() {
    let read = |count: u8| {
        let text = format!("[[bridge]]\nname='br0'\nauxiliary={count}");
        Config::from_toml(&text).map(|config| config.bridges[0].auxiliary.count())
    };
    assert_eq!(read(AuxiliaryCount::MAX), Ok(AuxiliaryCount::MAX));
    let error = read(AuxiliaryCount::MAX + 1)
        .expect_err("too many")
        .to_string();
    assert!(error.contains("'17' is not a number of auxiliary connections: use 0 to 16"));
    assert!("one".parse::<AuxiliaryCount>().is_err());
}
