//! The prose of comments and documents, measured and compared with a baseline in the tree.
//!
//! Some words mark a sentence without a subject ([`MARKERS`]). A package
//! may not use them more often than its baseline says, and the whole workspace not more often than
//! the limits. A summary line that opens with an interrogative, "of" or "by" is counted too. Lines
//! of Markdown have at most 100 columns. This rule measures; it cannot judge whether a text is good.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{SourceFile, TidyFinding, Tree};

/// The baseline, from the project's root: one line for each package, and one for Markdown.
pub(super) const BASELINE: &str = "xtask/prose.txt";

/// Columns of a line of Markdown outside tables, links and code.
const COLUMNS_MAX: usize = 100;

/// Tenths of a marker word per 1,000 words by which a package may exceed its baseline, ...
const TOLERANCE_TENTHS: usize = 2;

/// ... and occurrences: in a small package one word is more than that.
const TOLERANCE_OCCURRENCES: usize = 2;

/// First words of a summary line that has no subject.
#[rustfmt::skip]
const OPENINGS: [&str; 13] = [
    "what", "who", "whose", "whom", "whether", "which", "how", "where", "when", "why", "whatever",
    "of", "by",
];

/// Openings per 100 summary lines.
const OPENINGS_LIMIT: usize = 6;

/// Words that stand in for a missing noun or verb of the field.
struct MarkerWord {
    name: &'static str,
    words: &'static [&'static str],
    /// Tenths of an occurrence per 1,000 words, over the whole workspace.
    limit_tenths: usize,
}

#[rustfmt::skip]
const MARKERS: [MarkerWord; 6] = [
    MarkerWord { name: "what",  limit_tenths: 20, words: &["what", "whatever"] },
    MarkerWord { name: "tell",  limit_tenths: 5,  words: &["tell", "tells", "telling", "told"] },
    MarkerWord { name: "who",   limit_tenths: 5,  words: &["who", "whom", "whoever", "nobody", "somebody", "anybody", "everybody"] },
    MarkerWord { name: "ask",   limit_tenths: 5,  words: &["ask", "asks", "asking", "asked"] },
    MarkerWord { name: "stand", limit_tenths: 5,  words: &["stand", "stands", "standing", "stood", "lie", "lies", "lay", "lying", "lain"] },
    MarkerWord { name: "come",  limit_tenths: 8,  words: &["come", "comes", "coming", "came", "go", "goes", "going", "gone", "went"] },
];

/// Occurrences in the prose of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProseFigures {
    words: usize,
    summaries: usize,
    openings: usize,
    markers: [usize; MARKERS.len()],
}

/// One figure of a package, in tenths: per 100 summaries or per 1,000 words.
struct ProseRate {
    name: &'static str,
    occurrences: usize,
    tenths: usize,
    limit_tenths: usize,
}

impl ProseFigures {
    /// The figures as rates, in the order of the baseline's columns.
    fn rates(&self) -> Vec<ProseRate> {
        let openings = ProseRate {
            name: "openings",
            occurrences: self.openings,
            tenths: (1000 * self.openings).div_ceil(self.summaries.max(1)),
            limit_tenths: 10 * OPENINGS_LIMIT,
        };
        let markers = MARKERS
            .iter()
            .zip(self.markers)
            .map(|(marker, count)| ProseRate {
                name: marker.name,
                occurrences: count,
                tenths: (10_000 * count).div_ceil(self.words.max(1)),
                limit_tenths: marker.limit_tenths,
            });
        std::iter::once(openings).chain(markers).collect()
    }

    fn add(&mut self, other: &Self) {
        self.words += other.words;
        self.summaries += other.summaries;
        self.openings += other.openings;
        for (sum, count) in self.markers.iter_mut().zip(other.markers) {
            *sum += count;
        }
    }

    /// Counts one line of prose. Names between backticks are no prose.
    fn count_line(&mut self, text: &str, is_summary: bool) -> bool {
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" x ");
        let lower = prose.to_lowercase();
        let mut has_marker = false;
        let is_letter = |c: char| c.is_alphabetic() || c == '\'';
        let mut words = lower
            .split(|c| !is_letter(c))
            .filter(|word| !word.is_empty());
        if is_summary {
            self.summaries += 1;
            let first = words.clone().next();
            if first.is_some_and(|word| OPENINGS.contains(&word)) {
                self.openings += 1;
                has_marker = true;
            }
        }
        for word in &mut words {
            self.words += 1;
            for (marker, count) in MARKERS.iter().zip(&mut self.markers) {
                if marker.words.contains(&word) {
                    *count += 1;
                    has_marker = true;
                }
            }
        }
        has_marker
    }
}

/// The prose of one package, with the lines that hold marker words.
#[derive(Debug, Default)]
struct Prose {
    figures: ProseFigures,
    marked: Vec<(String, usize)>,
}

impl Prose {
    fn read(&mut self, file: &SourceFile) {
        match file.has_extension("md") {
            true => self.read_markdown(file),
            false => self.read_comments(file),
        }
    }

    fn read_comments(&mut self, file: &SourceFile) {
        let mut in_documentation = false;
        for (number, line) in file.lines() {
            let comment = line.trim_start().strip_prefix("//");
            let Some(comment) = comment else {
                in_documentation = false;
                continue;
            };
            let text = comment.strip_prefix(['/', '!']).unwrap_or(comment);
            let is_documentation = comment.starts_with('/');
            let is_summary = is_documentation && !in_documentation;
            in_documentation = is_documentation;
            if self.figures.count_line(text, is_summary) {
                self.marked.push((file.path.clone(), number));
            }
        }
    }

    fn read_markdown(&mut self, file: &SourceFile) {
        for (number, line) in prose_lines(file) {
            if self.figures.count_line(line, false) {
                self.marked.push((file.path.clone(), number));
            }
        }
    }
}

/// The lines of a document outside code fences.
pub(super) fn prose_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The name under which the baseline lists the prose of a file: its package, or `markdown`.
fn section(file: &SourceFile) -> Option<&str> {
    if file.has_extension("md") {
        return Some("markdown");
    }
    if !file.has_extension("rs") {
        return None;
    }
    let mut folders = file.path.split('/');
    match folders.next() {
        Some("crates") => folders.next(),
        first => first,
    }
}

/// The prose of every package and of all documents.
fn measure(tree: &Tree) -> BTreeMap<&str, Prose> {
    let mut sections: BTreeMap<&str, Prose> = BTreeMap::new();
    for file in &tree.files {
        if let Some(section) = section(file) {
            sections.entry(section).or_default().read(file);
        }
    }
    sections
}

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings: Vec<_> = tree.files.iter().flat_map(check_columns).collect();
    let Some(baseline) = tree.file(BASELINE) else {
        let text = "the baseline is missing: run `cargo xtask tidy --bless`".to_owned();
        findings.push(TidyFinding::new(BASELINE, 1, text));
        return findings;
    };
    let allowed = parse(&baseline.text);
    let sections = measure(tree);
    let mut total = ProseFigures::default();
    for (name, prose) in &sections {
        total.add(&prose.figures);
        match allowed.get(name) {
            None => findings.push(TidyFinding::new(
                BASELINE,
                1,
                format!("no line for `{name}`: run `cargo xtask tidy --bless`"),
            )),
            Some(allowed) => findings.extend(compare(name, prose, allowed)),
        }
    }
    for rate in total.rates() {
        if rate.tenths > rate.limit_tenths {
            let text = format!(
                "the workspace has {} of `{}`, at most {} are allowed",
                decimal(rate.tenths),
                rate.name,
                decimal(rate.limit_tenths)
            );
            findings.push(TidyFinding::new(BASELINE, 1, text));
        }
    }
    findings
}

/// Findings for the rates of a package that exceed its baseline.
fn compare(name: &str, prose: &Prose, allowed: &[usize]) -> Vec<TidyFinding> {
    let figures = &prose.figures;
    let exceeds = |rate: &ProseRate, allowed: usize| {
        let base = match rate.name {
            "openings" => figures.summaries * allowed / 1000,
            _ => figures.words * allowed / 10_000,
        };
        rate.tenths > allowed + TOLERANCE_TENTHS && rate.occurrences > base + TOLERANCE_OCCURRENCES
    };
    let worse: Vec<String> = figures
        .rates()
        .iter()
        .zip(allowed)
        .filter(|(rate, allowed)| exceeds(rate, **allowed))
        .map(|(rate, allowed)| {
            let (measured, allowed) = (decimal(rate.tenths), decimal(*allowed));
            format!("{measured} of `{}`, {allowed} in {BASELINE}", rate.name)
        })
        .collect();
    let text = format!(
        "the prose of `{name}` has {}: name the thing, then say what it does",
        worse.join("; ")
    );
    let places = prose.marked.iter().filter(|_| !worse.is_empty());
    places
        .take(PLACES_SHOWN)
        .map(|(path, line)| TidyFinding::new(path, *line, text.clone()))
        .collect()
}

/// Lines with marker words that a finding shows.
const PLACES_SHOWN: usize = 5;

/// Lines of Markdown that are too long. Tables and links cannot be wrapped.
fn check_columns(file: &SourceFile) -> Vec<TidyFinding> {
    if !file.has_extension("md") {
        return Vec::new();
    }
    let is_long = |line: &str| line.chars().count() > COLUMNS_MAX;
    let can_wrap = |line: &str| {
        !line.trim_start().starts_with('|') && !line.contains("](") && !line.contains("://")
    };
    prose_lines(file)
        .filter(|(_, line)| is_long(line) && can_wrap(line))
        .map(|(number, line)| {
            let columns = line.chars().count();
            let text = format!("{columns} columns, {COLUMNS_MAX} at most: wrap the line");
            TidyFinding::new(&file.path, number, text)
        })
        .collect()
}

/// The baseline's lines: a name and one number for each rate.
fn parse(text: &str) -> BTreeMap<&str, Vec<usize>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            Some((name, words.filter_map(tenths).collect()))
        })
        .collect()
}

/// The baseline of `tree` as it is now.
pub(super) fn baseline_of(tree: &Tree) -> String {
    let mut text =
        "# Marker words of each package's comments; `cargo xtask tidy --bless` writes this.\n\
         # Openings per 100 summary lines, the others per 1,000 words. More of one is a finding.\n"
            .to_owned();
    write!(text, "{:<14}", "#").expect("a String accepts every write");
    for rate in ProseFigures::default().rates() {
        write!(text, "{:>10}", rate.name).expect("a String accepts every write");
    }
    text.push('\n');
    for (name, prose) in measure(tree) {
        write!(text, "{name:<14}").expect("a String accepts every write");
        for rate in prose.figures.rates() {
            write!(text, "{:>10}", decimal(rate.tenths)).expect("a String accepts every write");
        }
        text.push('\n');
    }
    text
}

fn decimal(tenths: usize) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn tenths(text: &str) -> Option<usize> {
    let (whole, tenth) = text.split_once('.')?;
    let (whole, tenth): (usize, usize) = (whole.parse().ok()?, tenth.parse().ok()?);
    Some(10 * whole + tenth)
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    const GOOD: &str = "//! The flow cache.\n/// Returns the entry of a key.\nfn entry() {}\n";
    const BAD: &str = concat!(
        "//! Who comes here is told what it asks.\n",
        "/// What stands there.\nfn entry() {}\n",
        "/// Of whom nobody knows.\nfn other() {}\n",
        "/// Where it goes, and what comes of it.\nfn third() {}\n"
    );

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let found = check(&tree_of(files));
        found.iter().map(ToString::to_string).collect()
    }

    fn baseline(files: &[(&str, &str)]) -> String {
        baseline_of(&tree_of(files))
    }

    #[test]
    fn good_file_has_no_findings() {
        let files = [("crates/x/src/lib.rs", GOOD)];
        let text = baseline(&files);
        assert_eq!(
            text.lines().last().map(|line| line.starts_with("x ")),
            Some(true)
        );
        assert!(findings(&[files[0], (BASELINE, &text)]).is_empty());
    }

    #[test]
    fn bad_file_exceeds_baseline_and_limits() {
        let text = baseline(&[("crates/x/src/lib.rs", GOOD)]);
        let found = findings(&[("crates/x/src/lib.rs", BAD), (BASELINE, &text)]);
        let of_package = found.iter().filter(|text| text.contains("of `x`"));
        assert_eq!(of_package.count(), 4, "{found:#?}");
        assert!(found.iter().any(|text| text.contains("the workspace")));
        assert!(found[0].contains("100.0 of `openings`, 0.0"), "{found:#?}");
    }

    #[test]
    fn baseline_allows_its_own_figures_but_not_more() {
        let bad = ("crates/x/src/lib.rs", BAD);
        let text = baseline(&[bad]);
        let found = findings(&[bad, (BASELINE, &text)]);
        assert!(found.iter().all(|text| text.contains("the workspace")));
        let worse = format!(
            "{BAD}{}",
            "/// What nobody asked.\nfn more() {}\n".repeat(9)
        );
        let found = findings(&[(bad.0, &worse), (BASELINE, &text)]);
        assert!(found.iter().any(|text| text.contains("of `x`")));
    }

    #[test]
    fn package_without_a_line_is_found() {
        let found = findings(&[("crates/x/src/lib.rs", GOOD), (BASELINE, "")]);
        assert!(found[0].contains("no line for `x`"), "{found:?}");
    }

    #[test]
    fn code_and_names_are_no_prose() {
        let text = "/// Returns `what` a `who` is.\nfn told() { \"come\" }\n";
        let mut prose = Prose::default();
        prose.read(&tree_of(&[("crates/x/src/a.rs", text)]).files[0]);
        assert_eq!(prose.figures.markers, [0; MARKERS.len()]);
        assert_eq!((prose.figures.summaries, prose.figures.openings), (1, 0));
    }

    #[test]
    fn long_lines_of_markdown_are_found_outside_tables_links_and_code() {
        let long = "word ".repeat(21);
        let text = format!("# T\n\n{long}\n| {long} |\n[x](y) {long}\n```\n{long}\n```\n");
        let found = findings(&[("a.md", &text), (BASELINE, "markdown 0 0 0 0 0 0 0\n")]);
        assert_eq!(found, ["a.md:3: 105 columns, 100 at most: wrap the line"]);
    }

    #[test]
    fn missing_baseline_is_found() {
        let found = findings(&[("a.md", "# T\n")]);
        assert!(found[0].contains("the baseline is missing"), "{found:?}");
    }
}
