//! Valid and invalid description files.

use super::*;

const WHOLE: &str = r#"
brand = "Acme"
model = "Edge 24"
firmware = "1.2.3"
price = 499.0
currency = "USD"
port_count = 24
ports = ["enp3s0f0", "lab:enp3s0f1"]

[controller]
listen = "192.0.2.1:6653"
namespace = "management"

[snmp]
agent = "192.0.2.10:161"
community = "public"
interfaces = ["1", "2"]

[modes]
legacy = ["./set-mode", "legacy"]
"#;

fn error_of(text: &str) -> String {
    Description::parse(text, Path::new("edge.toml"))
        .unwrap_err()
        .to_string()
}

#[test]
fn complete_description_is_parsed() {
    let described = Description::parse(WHOLE, Path::new("edge.toml")).unwrap();
    assert_eq!(described.inventory.brand, "Acme");
    assert_eq!(described.external.version, "Acme Edge 24, 1.2.3");
    assert_eq!(described.external.ports[1].to_string(), "lab:enp3s0f1");
    assert_eq!(described.external.to_legacy, ["./set-mode", "legacy"]);
    assert!(described.external.to_openflow.is_empty() && described.external.offloads);
    let callee = described.controller.clone().unwrap();
    assert_eq!(callee.namespace, Some("/run/netns/management".into()));
    assert_eq!(described.snmp.clone().unwrap().community, "public");
    assert_eq!(described.modes(), Mode::ALL);
}

#[test]
fn description_requires_two_ports_and_a_name() {
    let text = "brand = 'Acme'\nmodel = 'X'\nports = ['a', 'b']";
    let described = Description::parse(text, Path::new("edge.toml")).unwrap();
    assert_eq!(described.modes(), [Mode::Legacy]);
    assert_eq!((described.controller, described.snmp), (None, None));
}

#[test]
fn unknown_words_are_refused_with_the_nearest_known() {
    let error_of = |from: &str, to: &str| error_of(&WHOLE.replace(from, to));
    assert_eq!(
        error_of("firmware", "frimware"),
        "edge.toml: unknown key 'frimware': did you mean firmware?"
    );
    assert_eq!(
        error_of("agent =", "agend ="),
        "edge.toml: unknown key 'snmp.agend': did you mean snmp.agent?"
    );
    assert_eq!(
        error_of("listen", "xyzzy"),
        "edge.toml: unknown key 'controller.xyzzy': valid keys are listen, namespace"
    );
}

#[test]
fn invalid_description_reports_the_remedy() {
    let with = |from: &str, to: &str| error_of(&WHOLE.replace(from, to));
    assert!(with("\"enp3s0f0\", ", "").contains("1 network cards: expected 2 to 16"));
    assert!(with("enp3s0f0", "lab:enp3s0f1").contains("is listed twice"));
    assert!(with("enp3s0f0", "a b").contains("is not an interface name"));
    assert!(with("currency = \"USD\"", "").contains("price and currency require each other"));
    assert!(with("499.0", "-1.0").contains("expected a number"));
    assert!(with("499.0", "nan").contains("expected a number"));
    assert!(with("192.0.2.1:6653", "192.0.2.1").contains("line 11: invalid socket address"));
    assert!(with("[\"1\", \"2\"]", "[\"1\"]").contains("1 names for 2 ports"));
    assert!(with("\"public\"", "\"\"").contains("snmp.community: expected 1 to 255 bytes"));
    assert!(
        with("[\"./set-mode\", \"legacy\"]", "[]").contains("modes.legacy: expected a program")
    );
    assert!(with("brand = \"Acme\"", "").contains("missing field `brand`"));
    assert!(with("model = ", "model ").starts_with("edge.toml: line 3"));
}
