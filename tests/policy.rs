//! Jobs and fragments as people write them, through the whole of policy: what plan they give, or what they are told.

#[path = "policy/compile.rs"]
mod compile;
#[path = "policy/environment.rs"]
mod environment;
mod harness;
#[path = "policy/hooks.rs"]
mod hooks;
#[path = "policy/jobs.rs"]
mod jobs;
#[path = "policy/limits.rs"]
mod limits;
#[path = "policy/lua.rs"]
mod lua;
#[path = "policy/oracle.rs"]
mod oracle;
#[path = "policy/sandbox.rs"]
mod sandbox;
#[path = "policy/support.rs"]
mod support;
