//! Words and rules of Hookgate: events, hooks, patterns, templates, dispatch. No IO.
