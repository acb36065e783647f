//! The grammar, by recursive descent.
//!
//! ```text
//! statement  = editor [ "where" condition ]                    its name begins with a small letter
//! condition  = term { "or" term }
//! term       = factor { "and" factor }
//! factor     = [ "not" ] ( comparison | "true" | "false" | converter | "(" condition ")" )
//! comparison = value ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//! value      = "nil" | "true" | "false" | text | bytes | WORD | list | map | sum
//! sum        = product { ( "+" | "-" ) product }
//! product    = unit { ( "*" | "/" ) unit }
//! unit       = [ "+" | "-" ] ( number | path | converter | "(" sum ")" )
//! editor     = name "(" [ arguments ] ")"
//! converter  = Name "(" [ arguments ] ")" { key }              the name begins with a capital letter
//! arguments  = [ name "=" ] value { "," [ name "=" ] value }
//! path       = name { key } { "." name { key } }
//! key        = "[" ( text | number | sum ) "]"
//! list       = "[" [ value { "," value } ] "]"
//! map        = "{" { text ":" value [ "," ] } "}"
//! ```

mod conditions;
mod reader;
mod statements;
mod values;

pub(super) use statements::{condition, statement};
