//! Fixtures that all tests share.

pub(crate) mod command;
pub(crate) mod comparison;
pub(crate) mod context;
pub(crate) mod controller;
pub(crate) mod deployment;
pub(crate) mod frames;
pub(crate) mod host;
pub(crate) mod network;
pub(crate) mod open_vswitch;
pub(crate) mod ovn;
pub(crate) mod pcap;
pub(crate) mod responder;
pub(crate) mod stateful;
pub(crate) mod switch;
