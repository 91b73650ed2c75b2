//! Cards
