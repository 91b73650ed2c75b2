//! A page walked through: its texts go out, their translations come in, its tags stay.
//!
//! It reads what this program writes, not any HTML: tags are well formed, and `<` and `>`
//! stand for themselves nowhere else.

use super::Language;
use super::phrases::{Phrases, Told};

/// Tags that a sentence goes on over.
const INLINE: [&str; 2] = ["a", "code"];
/// Blocks in which they do; elsewhere a link is a text of its own.
const SENTENCES: [&str; 3] = ["p", "li", "figcaption"];
/// What is left as it is, tags and all.
const LEFT: [&str; 3] = ["style", "script", "pre"];
/// Attributes that are read to people.
const READ: [&str; 2] = ["aria-label", "data-x"];

/// The page in `language`.
pub(super) fn translate(html: &str, language: Language, phrases: &mut Phrases) -> String {
    let mut walk = Walk {
        phrases,
        out: String::with_capacity(html.len()),
        open: Vec::new(),
        run: Run::default(),
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
        if LEFT.contains(&name) {
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

/// A text with the inline tags that stand in it, in order of their numbers.
#[derive(Default)]
struct Run {
    text: String,
    tags: Vec<(String, String)>,
    /// The tag that is open.
    within: Option<usize>,
}

struct Walk<'p> {
    phrases: &'p mut Phrases,
    out: String,
    /// Block elements that are open, outermost first.
    open: Vec<String>,
    run: Run,
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
        let goes_on = in_sentence || self.run.within.is_some();
        if INLINE.contains(&name) && goes_on {
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

    /// Writes the text so far, in the language.
    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        let text = run.text.trim();
        if text.is_empty() {
            self.out.push_str(&run.text);
            return;
        }
        let start = run.text.len() - run.text.trim_start().len();
        let (before, behind) = (&run.text[..start], &run.text[start + text.len()..]);
        let told = self.phrases.tell(text);
        // No line begins with a sign of per cent.
        let mut shown = told.text().replace(" %", "\u{a0}%");
        for (index, (open, close)) in run.tags.iter().enumerate() {
            let number = index + 1;
            shown = shown.replace(&format!("<{number}>"), open);
            shown = shown.replace(&format!("</{number}>"), close);
        }
        let in_drawing = self
            .open
            .iter()
            .any(|open| matches!(open.as_str(), "svg" | "title"));
        let marked = matches!(told, Told::Missing(_)) && !in_drawing;
        let shown = match marked {
            true => format!("<span lang=\"en\">{shown}</span>"),
            false => shown,
        };
        self.out.push_str(before);
        self.out.push_str(&shown);
        self.out.push_str(behind);
    }

    /// `tag` with what is read of it in the language.
    fn attributes(&mut self, tag: &str) -> String {
        let mut tag = tag.to_owned();
        for name in READ {
            let opening = format!(" {name}=\"");
            let Some(start) = tag.find(&opening).map(|at| at + opening.len()) else {
                continue;
            };
            let Some(end) = tag[start..].find('"').map(|end| start + end) else {
                continue;
            };
            let told = self.phrases.tell(&tag[start..end]);
            tag.replace_range(start..end, told.text());
        }
        tag
    }
}
