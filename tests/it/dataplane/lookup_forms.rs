//! Lookup forms of tables: the cheapest form for their rules, as `comporta tables` reports it.

use crate::support::command::{CommandOutput, comporta_program, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![tables_command_reports_lookup_form_size_and_cost,];

fn tables_command_reports_lookup_form_size_and_cost(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let table_rows = || {
        let comporta = comporta_program()
            .args(["tables", "br0", "--rundir"])
            .arg(switch.file(""));
        CommandOutput::run(context, comporta)?.expect_success()
    };
    let lines = |text: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines = text.lines().skip(1);
        lines.map(words).collect::<Vec<Vec<String>>>()
    };
    assert_eq!(lines(&table_rows()?), Vec::<Vec<String>>::new());
    switch.ofctl("add-flow br0 priority=1,actions=output:2")?;
    let small = lines(&table_rows()?);
    assert_eq!(small[0][..2], ["0", "1"]);
    let form = |line: &[String]| line.iter().find(|word| word.ends_with(':')).cloned();
    assert_eq!(form(&small[0]).as_deref(), Some("direct:"));
    // Cost of a lookup, and the spread of the samples, as measured so far.
    assert!(small[0][4].parse::<f64>()? > 0.0, "{small:?}");
    let spread = small[0][5].trim_matches(['(', ')']).split('-');
    let spread: Result<Vec<f64>, _> = spread.map(str::parse).collect();
    assert!(
        matches!(spread?[..], [low, high] if low <= high),
        "{small:?}"
    );
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
    let large = lines(&table_rows()?);
    assert_eq!(large[0][..2], ["0", "322"]);
    assert!(large[0].contains(&"bits:".to_owned()), "{large:?}");
    let [rules, bytes, cost] = [1, 2, 3].map(|column| large[0][column].parse::<usize>());
    assert!(bytes? > 8 * rules? && cost? < 2000, "{large:?}");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let unknown_bridge = program("ovs-appctl -t")
        .arg(switch.file("br0.ctl"))
        .args(["comporta/tables", "br1"]);
    assert!(
        CommandOutput::run(context, unknown_bridge)?
            .expect_failure()?
            .contains("no such bridge: br1")
    );
    Ok(())
}
