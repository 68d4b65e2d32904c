//! The hook author's workbench: what a hook set would do, found out before anybody depends on it.

pub mod replay;
