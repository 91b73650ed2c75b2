//! `comporta ofp-print` beside `ovs-ofctl ofp-print`: both print the vectors of all
//! versions and the messages of the fuzzers' corpora, and the texts are the same but
//! for what `crates/openflow/vectors/printed.txt` explains.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use openflow::{Detail, Dialect, Message, NiciraSetting, Version};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Rig, binary};

pub(crate) const RULES: &[Rule] = rules![
    vectors_are_printed_as_ovs_ofctl_prints_them,
    in_most_detail_vectors_are_printed_as_ovs_ofctl_prints_them,
    messages_of_the_corpora_are_printed_as_ovs_ofctl_prints_them,
    a_file_of_messages_is_printed_as_ovs_ofctl_prints_it,
];

/// Messages printed by one run of the tool: it takes a file of them.
const BATCH: usize = 200;

fn vectors_are_printed_as_ovs_ofctl_prints_them(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let vectors = all_vectors();
    assert!(vectors.len() > 800, "only {} vectors", vectors.len());
    compare(&rig, ground, &vectors, Detail::USUAL, &vector_is_explained)?;
    every_explanation_is_needed(&rig, ground, &vectors)
}

/// Fails for a vector that `otherwise.txt` names though it is printed the same.
fn every_explanation_is_needed(
    rig: &Rig<'_>,
    ground: &Ground,
    vectors: &[(String, Vec<u8>)],
) -> Outcome {
    let listed: Vec<_> = vectors
        .iter()
        .filter(|(name, _)| is_listed(name))
        .cloned()
        .collect();
    let names = OTHERWISE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '=']));
    assert_eq!(
        listed.len(),
        names.count(),
        "a name in otherwise.txt is no vector's"
    );
    for batch in listed.chunks(BATCH) {
        let printed = theirs(rig, ground, batch, Detail::USUAL)?;
        for ((name, bytes), theirs) in batch.iter().zip(printed) {
            let ours = openflow::print(bytes, Detail::USUAL);
            assert_ne!(ours, theirs, "{name} is printed the same");
        }
    }
    Ok(())
}

/// Vectors that are printed otherwise, below the reasons.
const OTHERWISE: &str = include_str!("../../crates/openflow/vectors/otherwise.txt");

/// Whether a vector is named there.
fn is_listed(name: &str) -> bool {
    OTHERWISE.lines().any(|line| line == name)
}

/// Whether a difference of a vector is explained: by its name, or by a row for vectors.
fn vector_is_explained(name: &str, theirs: &str, ours: &str) -> bool {
    let rows = explained();
    let mut rows = rows.iter().filter(|row| !row.corpora);
    is_listed(name) || rows.any(|row| row.explains(theirs, ours))
}

/// Whether a difference of a message of the corpora is explained, by any row.
fn message_is_explained(_: &str, theirs: &str, ours: &str) -> bool {
    explained().iter().any(|row| row.explains(theirs, ours))
}

fn in_most_detail_vectors_are_printed_as_ovs_ofctl_prints_them(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let vectors = all_vectors();
    assert!(vectors.len() > 800, "only {} vectors", vectors.len());
    compare(&rig, ground, &vectors, Detail(5), &vector_is_explained)
}

/// The vectors of all versions.
pub(crate) fn all_vectors() -> Vec<(String, Vec<u8>)> {
    let mut vectors = Vec::new();
    for version in ["v10", "v11", "v12", "v13", "v14", "v15"] {
        for path in files(&format!("crates/openflow/vectors/{version}")) {
            let file = path.file_name().unwrap_or_default().display();
            vectors.extend(vectors_of(&path, &format!("{version}/{file}")));
        }
    }
    vectors
}

fn messages_of_the_corpora_are_printed_as_ovs_ofctl_prints_them(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let mut messages = Vec::new();
    for version in Version::ALL {
        let corpus = format!("openflow_v1{}", version.number() - 1);
        for path in files(&format!("fuzz/corpus/{corpus}")) {
            let mut bytes = fs::read(&path)?;
            // The target of 1.0 takes a byte for the dialect.
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
    compare(
        &rig,
        ground,
        &messages,
        Detail::USUAL,
        &message_is_explained,
    )
}

/// Whether a message is one, in the version that its header names.
fn decodes(bytes: &[u8]) -> bool {
    let version = bytes
        .first()
        .and_then(|number| Version::from_number(*number));
    version.is_some_and(|version| {
        let dialect = Dialect::new(version).after(NiciraSetting::TableIds(true));
        Message::decode(bytes, dialect).is_ok()
    })
}

fn a_file_of_messages_is_printed_as_ovs_ofctl_prints_it(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let file = ground.file("messages");
    let mut bytes = Vec::new();
    for message in [Message::FeaturesRequest, Message::BarrierRequest] {
        message.encode(base::Xid(7), Version::V14, &mut bytes)?;
    }
    fs::write(&file, bytes)?;
    let file = file.display();
    let theirs = rig.ran(&format!("ovs-ofctl ofp-parse {file}"))?.output;
    let comporta = binary();
    let comporta = comporta.display();
    let ours = rig
        .ran(&format!("{comporta} ofp-print --stream {file}"))?
        .output;
    assert_eq!(ours, theirs);
    assert!(ours.contains("OFPT_BARRIER_REQUEST (OF1.4) (xid=0x7):"));
    Ok(())
}

/// The files in a folder of the repository, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = fs::read_dir(root.join(folder)).expect("the folder is there");
    let mut files: Vec<_> = listed
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    files
}

/// The names, behind that of the file, and the bytes of a file of vectors.
fn vectors_of(path: &Path, file: &str) -> Vec<(String, Vec<u8>)> {
    let text = fs::read_to_string(path).expect("the file can be read");
    let mut vectors: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("-- ") {
            vectors.push((format!("{file}: {name}"), Vec::new()));
        } else if let (Some(hex), Some((_, bytes))) = (line.strip_prefix("| "), vectors.last_mut())
        {
            let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
            let read = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
            bytes.extend(read.map(|byte| u8::try_from(byte).expect("two digits")));
        }
    }
    vectors
}

/// A difference that is explained: pieces of the tool's line and of ours, and whether only
/// messages of the corpora are meant.
struct Explained {
    theirs: String,
    ours: String,
    corpora: bool,
}

impl Explained {
    fn explains(&self, theirs: &str, ours: &str) -> bool {
        theirs.contains(&self.theirs) && ours.contains(&self.ours)
    }
}

fn explained() -> Vec<Explained> {
    let text = include_str!("../../crates/openflow/vectors/printed.txt");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let meant = line.strip_prefix("~ ");
        let (theirs, ours) = meant.unwrap_or(line).split_once('|')?;
        Some(Explained {
            theirs: theirs.strip_suffix(' ').unwrap_or(theirs).to_owned(),
            ours: ours.trim().to_owned(),
            corpora: meant.is_some(),
        })
    });
    rows.collect()
}

/// Fails for messages that are printed in two ways and not explained.
fn compare(
    rig: &Rig<'_>,
    ground: &Ground,
    messages: &[(String, Vec<u8>)],
    detail: Detail,
    explained: &dyn Fn(&str, &str, &str) -> bool,
) -> Outcome {
    let mut wrong = String::new();
    for batch in messages.chunks(BATCH) {
        let printed = theirs(rig, ground, batch, detail)?;
        for ((name, bytes), theirs) in batch.iter().zip(printed) {
            let ours = openflow::print(bytes, detail);
            let Some((their_line, our_line)) = difference(&theirs, &ours) else {
                continue;
            };
            if !explained(name, &their_line, &our_line) {
                let _ = writeln!(
                    wrong,
                    "{name}\n  theirs: {their_line}\n  ours:   {our_line}"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// What the tool prints of each message.
fn theirs(
    rig: &Rig<'_>,
    ground: &Ground,
    messages: &[(String, Vec<u8>)],
    detail: Detail,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let script = ground.file("print.sh");
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
    let ran = rig.ran(&format!("bash {}", script.display()))?;
    let end = format!("{END}\n");
    Ok(ran.output.split(&end).map(str::to_owned).collect())
}

/// What stands behind each message that the tool has printed.
const END: &str = "==end-of-message==";

/// The first lines that differ, if any do.
fn difference(theirs: &str, ours: &str) -> Option<(String, String)> {
    if theirs == ours {
        return None;
    }
    let (mut theirs, mut ours) = (theirs.lines(), ours.lines());
    loop {
        match (theirs.next(), ours.next()) {
            (Some(theirs), Some(ours)) if theirs == ours => {}
            (None, None) => return Some((String::new(), String::new())),
            (theirs, ours) => {
                let line = |line: Option<&str>| line.unwrap_or_default().to_owned();
                return Some((line(theirs), line(ours)));
            }
        }
    }
}
