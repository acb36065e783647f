//! Jobs and fragments as people write them, through the whole of policy: what plan they give, or what they are told.

#[path = "policy/support.rs"]
mod support;

#[path = "policy/jobs.rs"]
mod jobs;
