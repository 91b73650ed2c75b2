//! Translation of the texts and attributes of a page; its tags stay.
//!
//! It parses the HTML of this program only: tags are well formed, and other `<` and `>` are
//! escaped.

use super::Language;
use super::phrases::{Phrases, Translation};

/// Tags within a sentence.
const INLINE: [&str; 2] = ["a", "code"];
/// Blocks with such sentences; elsewhere a link is a separate text.
const SENTENCES: [&str; 3] = ["p", "li", "figcaption"];
/// Elements that are not translated.
const OPAQUE: [&str; 3] = ["style", "script", "pre"];
/// Attributes that are translated.
const ATTRIBUTES: [&str; 2] = ["aria-label", "data-x"];

/// Returns the page in `language`.
pub(super) fn translate(html: &str, language: Language, phrases: &mut Phrases) -> String {
    let mut walk = Walk {
        phrases,
        out: String::with_capacity(html.len()),
        open: Vec::new(),
        run: TextRun::default(),
    };
    let page = html.replacen(
        "<html lang=\"en\"",
        &format!("<html lang=\"{}\"", language.tag()),
        1,
    );
    let mut rest = page.as_str();
    while let Some(at) = rest.find('<') {
        walk.text(&rest[..at]);
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end + 1);
        let tag = &rest[at..end];
        rest = &rest[end..];
        let name = name(tag);
        if OPAQUE.contains(&name) {
            let close = format!("</{name}>");
            let end = rest
                .find(&close)
                .map_or(rest.len(), |end| end + close.len());
            walk.flush();
            walk.out.push_str(tag);
            walk.out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            walk.tag(tag, name);
        }
    }
    walk.text(rest);
    walk.flush();
    walk.out
}

fn name(tag: &str) -> &str {
    let inner = tag.trim_start_matches(['<', '/']);
    let end = inner.find([' ', '>', '/']).unwrap_or(inner.len());
    &inner[..end]
}

/// Text with its inline tags, in the order of their numbers.
#[derive(Default)]
struct TextRun {
    text: String,
    tags: Vec<(String, String)>,
    /// Number of the open tag.
    within: Option<usize>,
}

struct Walk<'p> {
    phrases: &'p mut Phrases,
    out: String,
    /// Open block elements, outermost first.
    open: Vec<String>,
    run: TextRun,
}

impl Walk<'_> {
    fn text(&mut self, text: &str) {
        self.run.text.push_str(text);
    }

    fn tag(&mut self, tag: &str, name: &str) {
        let closes = tag.starts_with("</");
        let in_sentence = self
            .open
            .last()
            .is_some_and(|open| SENTENCES.contains(&open.as_str()));
        let is_continued = in_sentence || self.run.within.is_some();
        if INLINE.contains(&name) && is_continued {
            self.inline(tag, closes);
            return;
        }
        self.flush();
        let attributes = self.attributes(tag);
        self.out.push_str(&attributes);
        let empty = matches!(name, "meta" | "br" | "!DOCTYPE");
        if closes {
            self.open.pop();
        } else if !empty {
            self.open.push(name.to_owned());
        }
    }

    fn inline(&mut self, tag: &str, closes: bool) {
        if let (true, Some(number)) = (closes, self.run.within.take()) {
            self.run.tags[number].1 = tag.to_owned();
            self.run.text.push_str(&format!("</{}>", number + 1));
        } else {
            self.run.tags.push((tag.to_owned(), String::new()));
            self.run.within = Some(self.run.tags.len() - 1);
            self.run
                .text
                .push_str(&format!("<{}>", self.run.tags.len()));
        }
    }

    /// Writes the translation of the text so far.
    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        let text = run.text.trim();
        if text.is_empty() {
            self.out.push_str(&run.text);
            return;
        }
        let start = run.text.len() - run.text.trim_start().len();
        let (before, after) = (&run.text[..start], &run.text[start + text.len()..]);
        let translation = self.phrases.translate(text);
        // No line begins with a percent sign.
        let mut shown = translation.text().replace(" %", "\u{a0}%");
        for (index, (open, close)) in run.tags.iter().enumerate() {
            let number = index + 1;
            shown = shown.replace(&format!("<{number}>"), open);
            shown = shown.replace(&format!("</{number}>"), close);
        }
        let in_drawing = self
            .open
            .iter()
            .any(|open| matches!(open.as_str(), "svg" | "title"));
        let is_marked = matches!(translation, Translation::Missing(_)) && !in_drawing;
        let shown = match is_marked {
            true => format!("<span lang=\"en\">{shown}</span>"),
            false => shown,
        };
        self.out.push_str(before);
        self.out.push_str(&shown);
        self.out.push_str(after);
    }

    /// Returns `tag` with its attributes translated.
    fn attributes(&mut self, tag: &str) -> String {
        let mut tag = tag.to_owned();
        for name in ATTRIBUTES {
            let opening = format!(" {name}=\"");
            let Some(start) = tag.find(&opening).map(|at| at + opening.len()) else {
                continue;
            };
            let Some(end) = tag[start..].find('"').map(|end| start + end) else {
                continue;
            };
            let translation = self.phrases.translate(&tag[start..end]);
            tag.replace_range(start..end, translation.text());
        }
        tag
    }
}
