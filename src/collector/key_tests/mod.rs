//! Every key that the reference (v0.161.0) documents for a component is taken, or refused with its line and what is
//! supported instead, or said to have no effect. Unknown keys are refused, or a warning where the reference takes them.

mod exporters;
mod processors;
mod receivers;
mod table;
