//! Where hooks come from and what they run: the folder loader.
