//! Cross-product tables: fields with few classes are combined in advance (Gupta and McKeown,
//! "Packet classification on multiple fields", SIGCOMM 1999: recursive flow classification;
//! "cross-producting" in Srinivasan, Varghese, Suri, Waldvogel 1998).
//!
//! Two classes of two fields determine the set of rules that accept both, and many pairs have the
//! same set. So a table maps each pair to a class of the product, and only the product has
//! vectors. A third field multiplies the product again:
//!
//! ```text
//!   eth_type -> class e ---+
//!                          +-- table[e][p] -> class x --+
//!   ip_proto -> class p ---+                            +-- table[x][d] -> class y -> vector
//!                                                       |
//!   tp_dst   -> class d --------------------------------+
//! ```
//!
//! Recursive flow classification multiplies all fields until one table is left, which can take
//! the product of all class counts. Here fields are multiplied in ascending order of their number
//! of classes and only while a table has at most 4,096 pairs and the product at most 512 classes;
//! the remaining columns are intersected as [bit vectors](super). An access list ends with a
//! column for each address, and one for all other fields.
//!
//! Cost of each multiplied field: its class and one table access, instead of a vector to and.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for n in 0..100 {
//!     let transport = ["tcp", "udp"][n % 2];
//!     let line = format!(
//!         "priority={n},{transport},nw_src=10.0.{n}.0/{},nw_dst=10.1.{n}.0/{},tp_dst={},actions=drop",
//!         24 + n % 9, 24 + n % 7, n % 5,
//!     );
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! // Protocol, port and one address share a column; the other address has its own.
//! assert_eq!(
//!     classifier.describe()[0].why,
//!     "100 rules with many masks: 4 dimensions in 2 columns, 2 of them searched"
//! );
//! ```

use crate::batch_mask::LOOKUP_BATCH;
use crate::packed_key::PackedKey;

use super::class_table::ClassTable;

/// Classes of one field, or of the product of several.
#[derive(Debug)]
pub(super) struct CrossProduct {
    first: ClassTable,
    factors: Vec<ProductFactor>,
}

/// A field that multiplies the classes of the fields before it.
#[derive(Debug)]
struct ProductFactor {
    classes: ClassTable,
    /// Number of its classes.
    count: usize,
    /// Class of the product, by class of the fields before and of this field.
    table: Box<[u16]>,
}

impl ProductFactor {
    /// Class of the product.
    #[inline]
    fn product(&self, before: u16, class: u16) -> u16 {
        self.table[usize::from(before) * self.count + usize::from(class)]
    }
}

impl CrossProduct {
    /// The classes of one field.
    pub(super) const fn of(first: ClassTable) -> Self {
        let factors = Vec::new();
        Self { first, factors }
    }

    /// Multiplies by a field of `count` classes. `table` has the class of the product, by class
    /// of the fields before and of `field`.
    pub(super) fn multiply(mut self, field: Self, count: usize, table: Vec<u16>) -> Self {
        let table = table.into();
        let classes = field.first;
        self.factors.push(ProductFactor {
            classes,
            count,
            table,
        });
        self
    }

    /// Class of a packet.
    #[inline]
    pub(super) fn find(&self, key: &PackedKey) -> u16 {
        let mut class = self.first.find(key);
        for factor in &self.factors {
            class = factor.product(class, factor.classes.find(key));
        }
        class
    }

    /// Classes of these packets, field by field, so that the memory of a field stays in the cache
    /// and the latencies of the packets overlap.
    #[inline]
    pub(super) fn find_each(&self, keys: &[PackedKey], classes: &mut [u16; LOOKUP_BATCH]) {
        self.first.find_each(keys.iter(), |index, class| {
            classes[index % LOOKUP_BATCH] = class;
        });
        for factor in &self.factors {
            factor.classes.find_each(keys.iter(), |index, class| {
                let product = &mut classes[index % LOOKUP_BATCH];
                *product = factor.product(*product, class);
            });
        }
    }

    /// Number of fields that are searched, and of those that are looked up in a table.
    pub(super) fn extent(&self) -> (usize, usize) {
        let factors = self.factors.iter().map(|factor| &factor.classes);
        let all = factors.chain([&self.first]);
        let searched = all.filter(|classes| classes.is_searched()).count();
        (searched, 1 + self.factors.len() - searched)
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let factors = self.factors.iter();
        let factors = factors.map(|factor| size_of_val(&*factor.table) + factor.classes.bytes());
        self.first.bytes() + factors.sum::<usize>()
    }
}
