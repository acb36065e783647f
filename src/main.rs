//! The binary `gymrun`: everything is in the library.

fn main() {}
