//! Tunnels as text.

use super::*;

fn read(kind: &str, words: &str) -> Result<TunnelConfig, String> {
    from_words(TunnelType::named(kind).expect("a type"), "t", words)
}

#[test]
fn tunnel_text_round_trips() {
    for (kind, words) in [
        ("vxlan", ",remote=10.0.0.1,in_key=7,out_key=7"),
        (
            "vxlan",
            ",remote=flow,in_key=flow,out_key=flow,exts=gbp,port=8472",
        ),
        (
            "vxlan",
            ",remote=fd00::1,local=fd00::2,exts=gpe,tos=inherit,ttl=9",
        ),
        (
            "geneve",
            ",remote=flow,local=flow,in_key=flow,out_key=flow,csum=true",
        ),
        (
            "gre",
            ",remote=1.2.3.4,df_default=false,seq=true,packet_type=legacy_l3",
        ),
        ("gre", ",remote=1.2.3.4,packet_type=ptap,egress_pkt_mark=7"),
        ("ip6gre", ",remote=fd00::1"),
        ("erspan", ",remote=1.2.3.4,erspan_ver=1,erspan_idx=0xf"),
        (
            "ip6erspan",
            ",remote=fd00::1,erspan_ver=2,erspan_dir=1,erspan_hwid=flow",
        ),
        ("gtpu", ",remote=1.2.3.4,in_key=3,out_key=4,port=2153"),
        ("lisp", ",remote=1.2.3.4"),
    ] {
        let tunnel = read(kind, words).expect(words);
        assert_eq!(tunnel.to_string(), words);
        assert_eq!(tunnel.type_name(), kind);
    }
    let short = read("vxlan", "remote=10.0.0.1,key=0x12").expect("legal");
    assert_eq!(short.in_key, TunnelKey::Given(18));
    assert_eq!(short.port, 4789);
}

#[test]
fn invalid_tunnels_get_a_reason() {
    for (kind, words, reason) in [
        (
            "vxlan",
            "",
            "t: vxlan type requires valid 'remote_ip' argument",
        ),
        ("vxlan", "remote=here", "bad address 'here'"),
        ("vxlan", "remote=224.0.0.1", "multicast"),
        (
            "vxlan",
            "remote=10.0.0.1,local=fd00::1",
            "same address family",
        ),
        (
            "vxlan",
            "remote=10.0.0.1,local=flow",
            "requires 'remote_ip=flow'",
        ),
        ("vxlan", "remote=10.0.0.1,key=16777216", "is not a key"),
        (
            "vxlan",
            "remote=10.0.0.1,packet_type=legacy_l3",
            "t: legacy_l3 configured on VXLAN (without GPE) tunnel that cannot carry L3 traffic",
        ),
        (
            "gre",
            "remote=10.0.0.1,packet_type=l3",
            "unknown packet_type 'l3'",
        ),
        ("gre", "remote=10.0.0.1,ttl=256", "use inherit"),
        ("geneve", "remote=10.0.0.1,port=0", "is not a UDP port"),
        ("geneve", "remote=10.0.0.1,colour=red", "no option 'colour'"),
        ("geneve", "remote=10.0.0.1,csum=x", "use true or false"),
    ] {
        let error = read(kind, words).expect_err(words);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn tunnel_options_are_printed_as_open_vswitch_prints_them() {
    let text = |kind, words| {
        let tunnel = read(kind, words).expect(words);
        let settings = tunnel.settings();
        let words = settings
            .iter()
            .map(|(word, value)| format!("{word}={value}"));
        let words: Vec<_> = words.collect();
        (words.join(", "), tunnel.datapath_port())
    };
    for (kind, words, options, port) in [
        ("gre", "remote=1.1.1.1", "remote_ip=1.1.1.1", "gre_sys"),
        (
            "gre",
            "remote=1.1.1.1,local=2.2.2.3,df_default=false,ttl=1,csum=true,tos=0x4",
            "csum=true, df_default=false, local_ip=2.2.2.3, remote_ip=1.1.1.1, tos=0x4, ttl=1",
            "gre_sys",
        ),
        (
            "vxlan",
            "remote=1.1.1.1,key=345,exts=gpe,out_key=flow",
            "in_key=345, out_key=flow, remote_ip=1.1.1.1",
            "vxlan_sys_4789",
        ),
        (
            "erspan",
            "remote=flow,erspan_ver=flow,key=56",
            "erspan_dir=flow, erspan_hwid=flow, erspan_idx=flow, erspan_ver=flow, key=56, \
             remote_ip=flow",
            "erspan_sys",
        ),
        (
            "ip6erspan",
            "remote=fd00::1,erspan_ver=2,erspan_dir=1,erspan_hwid=0x7",
            "erspan_dir=1, erspan_hwid=0x7, erspan_ver=2, remote_ip=fd00::1",
            "ip6erspan_sys",
        ),
        (
            "gtpu",
            "remote=1.1.1.1,packet_type=legacy_l3",
            "remote_ip=1.1.1.1",
            "gtpu_sys_2152",
        ),
        (
            "geneve",
            "remote=1.1.1.1,port=5000",
            "dst_port=5000, remote_ip=1.1.1.1",
            "genev_sys_5000",
        ),
    ] {
        assert_eq!(text(kind, words), (options.to_owned(), port.to_owned()));
    }
}

#[test]
fn invalid_erspan_options_get_a_reason() {
    for (words, reason) in [
        ("erspan_ver=3", "t: invalid erspan version: 3"),
        ("erspan_idx=100000", "t: invalid erspan index: 100000"),
        ("erspan_dir=2", "t: invalid erspan direction: 2"),
        ("erspan_hwid=40", "t: invalid erspan hardware ID: 40"),
        ("key=1024", "a number up to 1023"),
        ("packet_type=legacy_l3", "cannot carry L3 traffic"),
    ] {
        let error = read("erspan", &format!("remote=1.1.1.1,{words}")).expect_err(words);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn tunnels_of_one_udp_port_share_headers() {
    let [plain, gpe, gbp, geneve] = [
        ("vxlan", "remote=1.1.1.1"),
        ("vxlan", "remote=1.1.1.1,exts=gpe"),
        ("vxlan", "remote=1.1.1.1,exts=gbp"),
        ("geneve", "remote=1.1.1.1,port=4789"),
    ]
    .map(|(kind, words)| read(kind, words).expect(words));
    assert!(!plain.excludes(&gpe));
    assert!(plain.excludes(&gbp) && gpe.excludes(&gbp) && plain.excludes(&geneve));
}
