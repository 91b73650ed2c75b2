//! Records of this and of earlier versions, checked against the published format
//! (`docs/records.schema.json`), by the part of JSON Schema (2020-12) that it uses.

use serde_json::Value;

use super::*;
use crate::fixture;

const SCHEMA_TEXT: &str = include_str!("../../../docs/records.schema.json");

/// Lines of earlier versions: of the first ones, and of the last that had a shape of its own for
/// seven experiments.
const OLD: [&str; 2] = [fixture::SCHEMA_1, fixture::OLD_SHAPES];

/// Returns the first fault of `value` by `schema`, with its place.
fn fault(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let wrong = |what: &str| Some(format!("{place}: {what}: {value}"));
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.strip_prefix('#')?);
        let target = target.unwrap_or_else(|| panic!("{name} is not defined"));
        return fault(root, target, value, place);
    }
    let alternatives = |key: &str| schema[key].as_array().cloned().unwrap_or_default();
    for key in ["oneOf", "anyOf"] {
        let all = alternatives(key);
        let fits = |one: &&Value| fault(root, one, value, place).is_none();
        if !all.is_empty() && !all.iter().any(|one| fits(&one)) {
            let tried = all.iter().filter_map(|one| fault(root, one, value, place));
            return wrong(&tried.collect::<Vec<_>>().join("; or "));
        }
    }
    let kinds = match &schema["type"] {
        Value::Null => Vec::new(),
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_a(value, kind.as_str().unwrap())) {
        return wrong("is of another type");
    }
    if schema.get("const").is_some_and(|wanted| wanted != value)
        || schema["enum"]
            .as_array()
            .is_some_and(|all| !all.contains(value))
        || schema["minimum"]
            .as_f64()
            .is_some_and(|least| value.as_f64().is_some_and(|n| n < least))
    {
        return wrong("is not one of those that may be");
    }
    if let Some(items) = value.as_array().filter(|_| schema.get("items").is_some()) {
        let mut faults = items
            .iter()
            .map(|item| fault(root, &schema["items"], item, place));
        return faults.find_map(|fault| fault);
    }
    let object = value.as_object()?;
    for name in alternatives("required") {
        if !object.contains_key(name.as_str()?) {
            return wrong(&format!("lacks {name}"));
        }
    }
    object.iter().find_map(|(name, value)| {
        let known = schema["properties"].get(name);
        let schema = known.or_else(|| schema.get("additionalProperties"))?;
        fault(root, schema, value, &format!("{place}/{name}"))
    })
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the schema has a type {other}"),
    }
}

/// Returns the fault of a line, or `None` if it has the published format.
fn fault_of(line: &Value) -> Option<String> {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    fault(&schema, &schema, line, "")
}

#[test]
fn records_have_the_published_format() {
    for entry in fixture::entries() {
        let line = serde_json::to_value(&entry).unwrap();
        assert_eq!(fault_of(&line), None);
    }
    let mut trial = fixture::echo_trial("ovs", 1, "ip", 64);
    let mut reading = Reading::default();
    reading.put("p50_us", 1.5);
    reading.lack("p99_us", "why");
    reading.series.insert("all".to_owned(), vec![[1.0, 2.0]]);
    trial.reading = Some(reading);
    let line = serde_json::to_value(Entry::Trial(Box::new(trial))).unwrap();
    assert_eq!(fault_of(&line), None);
}

#[test]
fn old_records_have_the_published_format() {
    for line in OLD.iter().flat_map(|text| text.lines()) {
        assert_eq!(fault_of(&serde_json::from_str(line).unwrap()), None);
    }
}

#[test]
fn format_faults_are_found() {
    let line: Value = serde_json::from_str(OLD[0].lines().last().unwrap()).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut line = line.clone();
        *line.pointer_mut(pointer).unwrap() = value;
        fault_of(&line)
    };
    assert!(
        with("/run", Value::from("one"))
            .is_some_and(|fault| fault.contains("/run: is of another type"))
    );
    assert!(with("/run", Value::from(-1)).is_some());
    assert!(with("/kind", Value::from("journey")).is_some());
    assert!(with("/flaws/0/reason", Value::Null).is_some());
    assert!(with("/outcome", Value::from(7)).is_some());
    let mut short = line.clone();
    short.as_object_mut().unwrap().remove("device");
    assert!(fault_of(&short).is_some_and(|fault| fault.contains("lacks \"device\"")));
}
