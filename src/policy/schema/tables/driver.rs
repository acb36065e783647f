//! Keys of the driver (docs/api.md section 7).

use super::super::kinds::{COUNT, Choice, Key, Keys, LATE, Table, Type, WORD, key, later, required, with};
use super::process::PROCESS_KEYS;

/// Keys of every driver.
const DRIVER_KEYS: &[Key] = &[
    key("type", WORD, "`command`", "`command`, or `eval`, which `gym.eval` sets"),
    key(
        "policy_model",
        Type::Name,
        "the only process with a model",
        "whose model is the attribute `model` and in `NEMO_GYM_POLICY_*`",
    ),
    later("resumable"),
    key("policy_host", WORD, "by placement", "host in `NEMO_GYM_POLICY_BASE_URL`"),
    with("policy_model_type", WORD, "openai_model", ""),
    with("stdin", Type::Word(&["null", "inherit"]), "null", "standard input: `/dev/null`, or gymrun's own"),
    later("gym_install"),
    later("benchmarks"),
];

/// Keys of processes that a driver does not have: it waits for all others, its end is the end of the job, and there is
/// one of it.
const NOT_THE_DRIVERS: &[&str] = &["depends_on", "on_exit", "restart", "metrics"];

/// A driver with a command of its own.
pub const COMMAND: Table = Table { title: "Driver", parts: &[DRIVER_KEYS, PROCESS_KEYS], without: NOT_THE_DRIVERS };

/// `gym.eval`.
pub const EVAL: Table = Table {
    title: "Driver: `gym.eval`, type `eval`",
    parts: &[
        &[
            required("agent", WORD, "the name of the agent that is asked"),
            required("input", LATE, "the file of tasks"),
            key("output", LATE, "`<job dir>/artifacts/rollouts.jsonl`", "the file of rollouts"),
            with("repeats", COUNT, "1", "rollouts of each task"),
            key("concurrency", COUNT, "Gym's own", "rollouts at a time"),
            with("require_complete", Type::Bool, "true", "whether a missing rollout is an error"),
            key("overrides", Type::Map(Keys::Any, &Type::Tree), "{}", "further keys of the configuration"),
            with("executable", Type::Path, "gym", "the program"),
        ],
        DRIVER_KEYS,
        PROCESS_KEYS,
    ],
    without: &["depends_on", "on_exit", "restart", "metrics", "command", "shell"],
};

/// Any driver.
pub const DRIVER: Choice =
    Choice { default: Some("command"), tables: &[("command", &COMMAND), ("eval", &EVAL)], later: &[] };

/// `process_defaults.driver`.
pub const DEFAULTS: Table =
    Table { title: "`process_defaults.driver`", parts: &[PROCESS_KEYS], without: NOT_THE_DRIVERS };
