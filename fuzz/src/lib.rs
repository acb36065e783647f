//! What the fuzz targets do with an input, and what must hold then.
//!
//! Each takes the input as it would come from outside: a request body, a page, a file. So what stands in `corpora` can
//! be sent to a running collector, too. `tests/corpora.rs` of the crate around this one runs all of it as plain tests.

mod answers;
mod bodies;
mod config;
mod exposition;
mod otlp;
mod ottl;
mod stored;
mod texts;

pub use answers::answers;
pub use bodies::bodies;
pub use config::config;
pub use exposition::exposition;
pub use otlp::{otlp_json, otlp_wire};
pub use ottl::ottl;
pub use stored::stored;
pub use texts::{formats, patterns};

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its folder in `corpora`.
pub const TARGETS: [(&str, Target); 10] = [
    ("answers", answers),
    ("bodies", bodies),
    ("config", config),
    ("exposition", exposition),
    ("formats", formats),
    ("otlp_json", otlp_json),
    ("otlp_wire", otlp_wire),
    ("ottl", ottl),
    ("patterns", patterns),
    ("stored", stored),
];
