//! What goes wrong in the field: many flows, new flows, flows made against caches, cables that
//! are pulled, hours under load.

pub(super) mod flows;
pub(super) mod link_flap;
pub(super) mod soak;
