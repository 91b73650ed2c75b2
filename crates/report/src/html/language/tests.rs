//! Translations: complete for the texts of the report, with the placeholders and tags of the English.

use std::collections::{BTreeMap, BTreeSet};

use record::fixture;

use super::phrases::PhrasePattern;
use super::*;

const TRANSLATED: [Language; 2] = [Language::Portuguese, Language::Japanese];

fn phrases(language: Language) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for file in language.phrases() {
        for (key, phrase) in toml::from_str::<BTreeMap<String, String>>(file).unwrap() {
            let before = all.insert(key.clone(), phrase);
            assert!(before.is_none(), "{language}: '{key}' is in both files");
        }
    }
    all
}

/// Returns the texts of a page without a translation.
fn missing(html: &str) -> BTreeSet<&str> {
    let marked = html.split("<span lang=\"en\">").skip(1);
    marked
        .filter_map(|rest| rest.split("</span>").next())
        .collect()
}

#[test]
fn texts_of_the_report_are_translated() {
    let results = fixture::results(fixture::entries());
    for language in TRANSLATED {
        let html = super::super::render(&results, language);
        let missing = missing(&html);
        let own: Vec<&&str> = missing
            .iter()
            .filter(|text| !is_of_the_machine(text))
            .collect();
        assert!(own.is_empty(), "{language}: {own:#?}");
        assert!(html.contains(&format!("<html lang=\"{}\"", language.tag())));
    }
}

/// Returns true for texts of devices and programs.
fn is_of_the_machine(text: &str) -> bool {
    let texts = [
        "the hypervisor gave",
        "the device sent",
        "comporta lab",
        "(rx, ",
    ];
    texts.iter().any(|part| text.contains(part))
}

#[test]
fn parameter_with_a_value_is_translated() {
    let translate = |language, text| {
        let translation = Phrases::of(language).translate(text);
        translation.text().to_owned()
    };
    let about = "rules of a full table 10\u{202f}000";
    assert_eq!(
        translate(Language::Portuguese, about),
        "regras de uma tabela cheia: 10.000"
    );
    assert_eq!(
        translate(Language::Japanese, about),
        "満杯のテーブルのルール数 10,000"
    );
    let list = "TCP throughput (10.6×); Flow table update rate (1.97×)";
    assert_eq!(
        translate(Language::Portuguese, list),
        "Vazão TCP (10,6×); Taxa de mudanças (1,97×)"
    );
}

#[test]
fn placeholders_and_tags_are_those_of_the_english() {
    for language in TRANSLATED {
        for (key, phrase) in phrases(language) {
            let marks = |text: &str| {
                let opened = text.match_indices(['{', '<']).map(|(at, _)| {
                    let end = text[at..]
                        .find(['}', '>'])
                        .map_or(text.len(), |end| at + end + 1);
                    text[at..end].to_owned()
                });
                opened.collect::<BTreeSet<_>>()
            };
            assert_eq!(marks(&key), marks(&phrase), "{language}: {key}");
        }
    }
}

#[test]
fn languages_have_the_same_phrases() {
    let keys = |language| phrases(language).into_keys().collect::<BTreeSet<_>>();
    let (one, other) = (keys(Language::Portuguese), keys(Language::Japanese));
    let differ: Vec<&String> = one.symmetric_difference(&other).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn pattern_finds_its_parts() {
    let pattern = PhrasePattern::new("{1} of {2} trials are valid.");
    assert_eq!(
        pattern.parts("3 of 12 trials are valid."),
        Some(vec!["3", "12"])
    );
    assert_eq!(pattern.parts("none of it"), None);
    assert_eq!(pattern.parts(" of 12 trials are valid."), None);
}

#[test]
fn text_without_a_phrase_is_marked_as_english() {
    let page = "<html lang=\"en\"><p>nobody has a phrase for this here</p><td>x 1.5</td></html>";
    let translated = translate(page, Language::Portuguese);
    assert_eq!(
        translated,
        "<html lang=\"pt-BR\"><p><span lang=\"en\">nobody has a phrase for this here</span></p><td>x 1,5</td></html>"
    );
}
