//! The chat service: history, message queue, send loop, tools.
