//! `comporta ofp-print` compared with `ovs-ofctl ofp-print`, on the test vectors of all versions
//! and the messages of the fuzzing corpora. The texts are equal except for the differences that
//! `crates/openflow/vectors/printed.txt` explains.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use openflow::{Detail, Dialect, Message, NiciraSetting, Version};

use crate::support::command::comporta_binary;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    vectors_are_printed_like_ovs_ofctl,
    vectors_are_printed_like_ovs_ofctl_with_most_detail,
    corpus_messages_are_printed_like_ovs_ofctl,
    message_file_is_printed_like_ovs_ofctl,
];

/// Number of messages that one script prints.
const BATCH: usize = 200;

fn vectors_are_printed_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let vectors = all_vectors();
    assert!(vectors.len() > 800, "only {} vectors", vectors.len());
    expect_equal_output(
        &network,
        context,
        &vectors,
        Detail::USUAL,
        &vector_is_explained,
    )?;
    expect_needed_explanations(&network, context, &vectors)
}

/// Asserts that each vector in `otherwise.txt` is printed differently.
fn expect_needed_explanations(
    network: &TestNetwork<'_>,
    context: &TestContext,
    vectors: &[(String, Vec<u8>)],
) -> TestResult {
    let listed: Vec<_> = vectors
        .iter()
        .filter(|(name, _)| is_listed(name))
        .cloned()
        .collect();
    let names = DIFFERENT_VECTORS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '=']));
    assert_eq!(
        listed.len(),
        names.count(),
        "a name in otherwise.txt is not the name of a vector"
    );
    for batch in listed.chunks(BATCH) {
        let printed = ovs_ofctl_print(network, context, batch, Detail::USUAL)?;
        for ((name, bytes), ovs) in batch.iter().zip(printed) {
            let comporta = openflow::print(bytes, Detail::USUAL);
            assert_ne!(comporta, ovs, "{name} is printed equally");
        }
    }
    Ok(())
}

/// Vectors that are printed differently, below the reasons.
const DIFFERENT_VECTORS: &str = include_str!("../../../crates/openflow/vectors/otherwise.txt");

/// True if `otherwise.txt` lists the vector.
fn is_listed(name: &str) -> bool {
    DIFFERENT_VECTORS.lines().any(|line| line == name)
}

/// True if a vector's difference is explained by its name or by a row for vectors.
fn vector_is_explained(name: &str, ovs: &str, comporta: &str) -> bool {
    let rows = explained_differences();
    let mut rows = rows.iter().filter(|row| !row.corpora);
    is_listed(name) || rows.any(|row| row.explains(ovs, comporta))
}

/// True if a row explains the difference of a corpus message.
fn message_is_explained(_: &str, ovs: &str, comporta: &str) -> bool {
    explained_differences()
        .iter()
        .any(|row| row.explains(ovs, comporta))
}

fn vectors_are_printed_like_ovs_ofctl_with_most_detail(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let vectors = all_vectors();
    assert!(vectors.len() > 800, "only {} vectors", vectors.len());
    expect_equal_output(&network, context, &vectors, Detail(5), &vector_is_explained)
}

/// Test vectors of all versions.
pub(crate) fn all_vectors() -> Vec<(String, Vec<u8>)> {
    let mut vectors = Vec::new();
    for version in ["v10", "v11", "v12", "v13", "v14", "v15"] {
        for path in files(&format!("crates/openflow/vectors/{version}")) {
            let file = path.file_name().unwrap_or_default().display();
            vectors.extend(read_vectors(&path, &format!("{version}/{file}")));
        }
    }
    vectors
}

fn corpus_messages_are_printed_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let mut messages = Vec::new();
    for version in Version::ALL {
        let corpus = format!("openflow_v1{}", version.number() - 1);
        for path in files(&format!("fuzz/corpus/{corpus}")) {
            let mut bytes = fs::read(&path)?;
            // The fuzz target of OpenFlow 1.0 reads the first byte as the dialect.
            bytes.drain(..usize::from(version == Version::V10).min(bytes.len()));
            let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
            bytes.truncate(length.into());
            if let Some(header) = bytes.get_mut(2..4) {
                header.copy_from_slice(&length.to_be_bytes());
            }
            if decodes(&bytes) {
                messages.push((path.display().to_string(), bytes));
            }
        }
    }
    assert!(messages.len() > 1000, "only {} messages", messages.len());
    expect_equal_output(
        &network,
        context,
        &messages,
        Detail::USUAL,
        &message_is_explained,
    )
}

/// True if the message decodes in the version of its header.
fn decodes(bytes: &[u8]) -> bool {
    let version = bytes
        .first()
        .and_then(|number| Version::from_number(*number));
    version.is_some_and(|version| {
        let dialect = Dialect::new(version).after(NiciraSetting::TableIds(true));
        Message::decode(bytes, dialect).is_ok()
    })
}

fn message_file_is_printed_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let file = context.unique_path("messages");
    let mut bytes = Vec::new();
    for message in [Message::FeaturesRequest, Message::BarrierRequest] {
        message.encode(base::Xid(7), Version::V14, &mut bytes)?;
    }
    fs::write(&file, bytes)?;
    let file = file.display();
    let ovs = network.run(&format!("ovs-ofctl ofp-parse {file}"))?.stdout;
    let binary = comporta_binary();
    let binary = binary.display();
    let comporta = network
        .run(&format!("{binary} ofp-print --stream {file}"))?
        .stdout;
    assert_eq!(comporta, ovs);
    assert!(comporta.contains("OFPT_BARRIER_REQUEST (OF1.4) (xid=0x7):"));
    Ok(())
}

/// Files of a folder of the project, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = fs::read_dir(root.join(folder)).expect("the folder exists");
    let mut files: Vec<_> = listed
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    files.sort();
    files
}

/// Names, after the file's name, and bytes of the vectors in a file.
fn read_vectors(path: &Path, file: &str) -> Vec<(String, Vec<u8>)> {
    let text = fs::read_to_string(path).expect("the file is readable");
    let mut vectors: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("-- ") {
            vectors.push((format!("{file}: {name}"), Vec::new()));
        } else if let (Some(hex), Some((_, bytes))) = (line.strip_prefix("| "), vectors.last_mut())
        {
            let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
            let read = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
            bytes.extend(
                read.map(|byte| {
                    u8::try_from(byte).expect("two hexadecimal digits fit into a byte")
                }),
            );
        }
    }
    vectors
}

/// An explained difference: parts of the tool's line and of Comporta's, and whether it applies to
/// corpus messages only.
struct ExplainedDifference {
    ovs: String,
    comporta: String,
    corpora: bool,
}

impl ExplainedDifference {
    fn explains(&self, ovs: &str, comporta: &str) -> bool {
        ovs.contains(&self.ovs) && comporta.contains(&self.comporta)
    }
}

fn explained_differences() -> Vec<ExplainedDifference> {
    let text = include_str!("../../../crates/openflow/vectors/printed.txt");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let corpora_row = line.strip_prefix("~ ");
        let (ovs, comporta) = corpora_row.unwrap_or(line).split_once('|')?;
        Some(ExplainedDifference {
            ovs: ovs.strip_suffix(' ').unwrap_or(ovs).to_owned(),
            comporta: comporta.trim().to_owned(),
            corpora: corpora_row.is_some(),
        })
    });
    rows.collect()
}

/// Asserts that messages are printed equally, or that the difference is explained.
fn expect_equal_output(
    network: &TestNetwork<'_>,
    context: &TestContext,
    messages: &[(String, Vec<u8>)],
    detail: Detail,
    explained_differences: &dyn Fn(&str, &str, &str) -> bool,
) -> TestResult {
    let mut differences = String::new();
    for batch in messages.chunks(BATCH) {
        let printed = ovs_ofctl_print(network, context, batch, detail)?;
        for ((name, bytes), ovs) in batch.iter().zip(printed) {
            let comporta = openflow::print(bytes, detail);
            let Some((ovs_line, comporta_line)) = difference(&ovs, &comporta) else {
                continue;
            };
            if !explained_differences(name, &ovs_line, &comporta_line) {
                let _ = writeln!(
                    differences,
                    "{name}\n  ovs-ofctl: {ovs_line}\n  comporta:  {comporta_line}"
                );
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
    Ok(())
}

/// Output of the tool for each message.
fn ovs_ofctl_print(
    network: &TestNetwork<'_>,
    context: &TestContext,
    messages: &[(String, Vec<u8>)],
    detail: Detail,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let script = context.unique_path("print.sh");
    let mut lines = String::new();
    for (_, bytes) in messages {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(
            lines,
            "ovs-ofctl -voff ofp-print - {} <<< {hex}; echo {END}",
            detail.0
        );
    }
    fs::write(&script, lines)?;
    let output = network.run(&format!("bash {}", script.display()))?;
    let end = format!("{END}\n");
    Ok(output.stdout.split(&end).map(str::to_owned).collect())
}

/// Line after each printed message.
const END: &str = "==end-of-message==";

/// First lines that differ, or `None` if the texts are equal.
fn difference(ovs: &str, comporta: &str) -> Option<(String, String)> {
    if ovs == comporta {
        return None;
    }
    let (mut ovs, mut comporta) = (ovs.lines(), comporta.lines());
    loop {
        match (ovs.next(), comporta.next()) {
            (Some(ovs), Some(comporta)) if ovs == comporta => {}
            (None, None) => return Some((String::new(), String::new())),
            (ovs, comporta) => {
                let line = |line: Option<&str>| line.unwrap_or_default().to_owned();
                return Some((line(ovs), line(comporta)));
            }
        }
    }
}
