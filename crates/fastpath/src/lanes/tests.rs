//! Every field is somewhere; that it is where lookups look, the lookups prove.

use super::*;

#[test]
fn every_field_has_a_place() {
    for row in Field::all() {
        assert_eq!(
            place(row.field).is_none(),
            row.field.view().is_some(),
            "{}",
            row.name
        );
    }
}
