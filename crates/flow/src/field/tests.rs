//! The field table is consistent.

use super::*;

#[test]
fn rows_are_in_order_of_enumeration() {
    for (index, row) in Field::all().enumerate() {
        assert_eq!(row.field as usize, index, "{}", row.name);
        let most = if row.field.option().is_some() {
            992
        } else {
            128
        };
        assert!((1..=most).contains(&row.bits), "{}", row.name);
    }
}

#[test]
fn wire_ids_and_names_are_unique() {
    for a in Field::all() {
        for b in Field::all().filter(|b| b.field != a.field) {
            assert!(a.oxm.is_none() || a.oxm != b.oxm, "{} {}", a.name, b.name);
            assert!(a.nxm.is_none() || a.nxm != b.nxm, "{} {}", a.name, b.name);
            assert_ne!(a.name, b.name);
        }
    }
}

#[test]
fn labels_take_four_bytes_on_wire() {
    assert_eq!(Field::MplsLabel.bytes(), 4);
    assert_eq!(Field::Ipv6Flabel.bytes(), 4);
    assert_eq!(Field::PbbIsid.bytes(), 3);
    assert_eq!(Field::VlanVid.bytes(), 2);
    assert_eq!(Field::EthSrc.bytes(), 6);
    assert_eq!(Field::Ipv6Src.bytes(), 16);
}

#[test]
fn oxm_and_nxm_headers_identify_fields() {
    for row in Field::all() {
        if let Some(id) = row.oxm {
            assert_eq!(Field::from_oxm(id), Some(row.field));
        }
        if let Some(id) = row.nxm {
            assert_eq!(Field::from_nxm(id), Some(row.field));
        }
    }
}
