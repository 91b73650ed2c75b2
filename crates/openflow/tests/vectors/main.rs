//! Tests of all vectors under `vectors/`: bytes from other programs with their meaning.
//!
//! A file is a list of vectors:
//!
//! ```text
//! -- the title
//! with table_ids                settings of the controller (dialect)
//! | 010e0050 00000008 ...       the bytes
//! : OFPT_FLOW_MOD ...           the text of `ovs-ofctl ofp-print` of Open vSwitch
//! = FlowMod(...)                the decoded message, or
//! ! ActionBadLength at 0x48     the refusal
//! ~                             our encoding differs (another order, other padding), or
//! ~ FlowMod(...)                our encoding differs and decodes to this equivalent
//! ```
//!
//! Our text equals that program's, with the exceptions that `vectors/printed.txt` explains. Decoded
//! bytes must encode to the same bytes unless the vector has a `~` line. `UPDATE=1` rewrites the
//! last three kinds of line; the difference is reviewed like code.

mod answers;
mod printed;
mod text;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use openflow::{Dialect, FlowFormat, Message, NiciraSetting, PacketInFormat, Version};

/// A vector in its file.
#[derive(Default)]
struct Vector {
    /// The lines that remain unchanged.
    head: String,
    dialect: Vec<String>,
    bytes: Vec<u8>,
    /// The lines to compare.
    expected: String,
}

#[test]
fn vectors_of_openflow_1_0_mean_what_they_say() {
    check_directory("v10", Version::V10);
}

#[test]
fn vectors_of_openflow_1_1_mean_what_they_say() {
    check_directory("v11", Version::V11);
}

#[test]
fn vectors_of_openflow_1_2_mean_what_they_say() {
    check_directory("v12", Version::V12);
}

#[test]
fn vectors_of_openflow_1_3_mean_what_they_say() {
    check_directory("v13", Version::V13);
}

#[test]
fn vectors_of_openflow_1_4_mean_what_they_say() {
    check_directory("v14", Version::V14);
}

#[test]
fn vectors_of_openflow_1_5_mean_what_they_say() {
    check_directory("v15", Version::V15);
}

fn check_directory(name: &str, version: Version) {
    let wrong: Vec<_> = files_of(name)
        .iter()
        .filter_map(|path| check_file(path, version))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files of a version, in order.
fn files_of(name: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The differences in a file, if there are any.
fn check_file(path: &Path, version: Version) -> Option<String> {
    let text = fs::read_to_string(path).expect("the file can be read");
    let (mut actual, mut wrong) = (String::new(), String::new());
    let (preamble, vectors) = parse(&text);
    actual.push_str(&preamble);
    for vector in &vectors {
        let described = describe(vector, version);
        if described != vector.expected {
            let head = &vector.head;
            let _ = write!(wrong, "{}\n{head}\n{described}\n", path.display());
        }
        actual.push_str(&vector.head);
        actual.push_str(&described);
        actual.push('\n');
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, actual.trim_end().to_owned() + "\n").expect("the file can be written");
        return None;
    }
    (!wrong.is_empty()).then_some(wrong)
}

#[test]
fn vectors_print_as_ovs_ofctl_prints_them() {
    let mut wrong = String::new();
    for version in ["v10", "v11", "v12", "v13", "v14", "v15"] {
        for path in files_of(version) {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let name = path.file_name().expect("it is a file").display();
            let file = format!("{version}/{name}");
            for vector in parse(&text).1 {
                let (head, bytes) = (&vector.head, &vector.bytes);
                if let Some(difference) = printed::difference(&file, head, bytes) {
                    let _ = write!(wrong, "{}\n{difference}", path.display());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn detail_3_prints_members_of_openflow_1_0_match() {
    let bytes = text::bytes(
        "010e0050000000060038104c0001000000000000000000000000000a00000800000600000a010000 \
         000000000000005000000000000000000000000000000007ffffffffffff00000000000800020000",
    );
    let printed = openflow::print(&bytes, openflow::Detail(3));
    let expected = "OFPT_FLOW_MOD (xid=0x6): ADD tcp,in_port=1,dl_vlan=10,dl_vlan_pcp=*,dl_src=*,\
                  dl_dst=*,nw_src=10.1.0.0/16,nw_dst=*,nw_tos=*,tp_src=*,tp_dst=80 pri:7 \
                  actions=output:2\n";
    assert_eq!(printed, expected);
}

/// Splits a file into the text before the first vector, and the vectors.
fn parse(text: &str) -> (String, Vec<Vector>) {
    let (mut preamble, mut vectors) = (String::new(), Vec::<Vector>::new());
    for line in text.lines() {
        if line.starts_with("-- ") {
            vectors.push(Vector::default());
        }
        let Some(vector) = vectors.last_mut() else {
            preamble.push_str(line);
            preamble.push('\n');
            continue;
        };
        match line.chars().next() {
            None => {}
            Some('=' | '!' | '~' | ' ' | ')' | '}') => {
                vector.expected.push_str(line);
                vector.expected.push('\n');
            }
            Some(_) => {
                vector.head.push_str(line);
                vector.head.push('\n');
                if let Some(words) = line.strip_prefix("with ") {
                    vector.dialect = words.split(' ').map(str::to_owned).collect();
                }
                if let Some(hex) = line.strip_prefix("| ") {
                    vector.bytes.extend(text::bytes(hex));
                }
            }
        }
    }
    (preamble, vectors)
}

/// The dialect of the connection of a vector.
fn dialect(vector: &Vector, version: Version) -> Dialect {
    let settings = vector.dialect.iter().map(|word| setting(word));
    settings.fold(Dialect::new(version), Dialect::after)
}

/// The setting of a word in a `with` line.
fn setting(word: &str) -> NiciraSetting {
    match word {
        "nxm" => NiciraSetting::FlowFormat(FlowFormat::Nicira),
        "table_ids" => NiciraSetting::TableIds(true),
        "nxt_packet_in" => NiciraSetting::PacketInFormat(PacketInFormat::Nicira),
        "nxt_packet_in2" => NiciraSetting::PacketInFormat(PacketInFormat::Nicira2),
        word => panic!("no such dialect: {word}"),
    }
}

/// The expected lines of a vector after its head.
fn describe(vector: &Vector, version: Version) -> String {
    let dialect = dialect(vector, version);
    match Message::decode(&vector.bytes, dialect) {
        Err(malformed) => format!("! {:?} at {:#x}\n", malformed.refusal, malformed.at),
        Ok((xid, message)) => {
            let mut described = format!("= {}\n", text::pretty(&message));
            let mut encoded = Vec::new();
            message
                .encode(xid, dialect, &mut encoded)
                .unwrap_or_else(|error| panic!("{error}: {message:#?}"));
            if encoded != vector.bytes {
                let read = Message::decode(&encoded, dialect);
                let (_, read) = read.expect("own encoding decodes");
                if read == message {
                    described.push_str("~\n");
                } else {
                    let _ = writeln!(described, "~ {}", text::pretty(&read));
                }
            }
            described
        }
    }
}
