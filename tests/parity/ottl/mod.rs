//! OTTL and the processors that use it, by tables: hundreds of statements on few starts.
//!
//! What a statement may be is asked of both programs at once: each statement stands in a processor of its own, and
//! `validate` names all that are refused. Expressions and conditions then run on one item each, every result under a key
//! of its own; a statement that edits gets a copy of the telemetry for itself, and no other one runs on it.

mod acceptance;
mod conditions;
mod inputs;
mod modes;
mod processors;
mod statements;
mod tables;
mod twice;
