//! Reads people's YAML with source text and lines; writes YAML deterministically.
