//! Tables find their rules in the form that costs least, and say in which.

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![a_table_says_how_it_finds_its_rules,];

fn a_table_says_how_it_finds_its_rules(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let told = || {
        let asked = program(comporta_binary().to_str().expect("a path is text"))
            .args(["tables", "br0", "--rundir"])
            .arg(switch.file(""));
        CommandOutput::run(context, asked)?.expect_success()
    };
    let lines = |text: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines = text.lines().skip(1);
        lines.map(words).collect::<Vec<Vec<String>>>()
    };
    assert_eq!(lines(&told()?), Vec::<Vec<String>>::new());
    switch.ofctl("add-flow br0 priority=1,actions=output:2")?;
    let few = lines(&told()?);
    assert_eq!(few[0][..2], ["0", "1"]);
    let form = |line: &[String]| line.iter().find(|word| word.ends_with(':')).cloned();
    assert_eq!(form(&few[0]).as_deref(), Some("direct:"));
    // What a lookup takes, and the tenths of the samples, as the table is published by now.
    assert!(few[0][4].parse::<f64>()? > 0.0, "{few:?}");
    let spread = few[0][5].trim_matches(['(', ')']).split('-');
    let spread: Result<Vec<f64>, _> = spread.map(str::parse).collect();
    assert!(matches!(spread?[..], [low, high] if low <= high), "{few:?}");
    let mut flows = String::new();
    for net in 1..=40 {
        for (bits, port) in [(16, 80), (20, 443), (24, 0x2000), (28, 22)] {
            flows += &format!("priority={bits},tcp,nw_src=10.{net}.0.0/{bits},actions=drop\n");
            flows += &format!(
                "priority={bits},tcp,nw_dst=10.{net}.0.0/{bits},tp_dst={port},actions=drop\n"
            );
        }
    }
    flows += "priority=9,in_port=2,actions=output:1\n";
    let file = switch.file("flows");
    std::fs::write(&file, flows)?;
    switch.ofctl(&format!("add-flows br0 {}", file.display()))?;
    let many = lines(&told()?);
    assert_eq!(many[0][..2], ["0", "322"]);
    assert!(many[0].contains(&"bits:".to_owned()), "{many:?}");
    let [rules, bytes, cost] = [1, 2, 3].map(|column| many[0][column].parse::<usize>());
    assert!(bytes? > 8 * rules? && cost? < 2000, "{many:?}");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let nobody = program("ovs-appctl -t")
        .arg(switch.file("br0.ctl"))
        .args(["comporta/tables", "br1"]);
    assert!(
        CommandOutput::run(context, nobody)?
            .expect_failure()?
            .contains("no such bridge: br1")
    );
    Ok(())
}
