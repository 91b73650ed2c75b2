//! Every field is somewhere; that it is where lookups look, the lookups prove.

use super::*;

#[test]
fn every_field_has_a_place() {
    for row in Field::all() {
        assert_eq!(
            place(row.field).is_none(),
            row.field.view().is_some() || row.field.option().is_some(),
            "{}",
            row.name
        );
    }
}

#[test]
fn a_wide_field_has_two_words() {
    for row in Field::all().filter(|row| place(row.field).is_some()) {
        let is_wide = row.bits > 64;
        assert_eq!(place_of(row.field).is_wide, is_wide, "{}", row.name);
    }
}
