//! The real program, run as a user runs it.
