//! What goes wrong in the field: many flows, new flows, flows made against caches, cables that
//! are pulled, hours under load.

pub(super) mod controller_loss;
pub(super) mod flows;
pub(super) mod link_flap;
pub(super) mod masks;
pub(super) mod soak;
pub(super) mod storm;
