//! What a new folder begins with: a configuration, rules, their tests, and a page that says how they go together. Only
//! texts; nothing is written here.
