//! Keys of services (docs/api.md section 5).

use super::super::kinds::{ARGUMENT, COUNT, Choice, Key, Table, Type, WORD, key, later, required, with};
use super::process::PROCESS_KEYS;

/// Keys of every service.
pub const SERVICE_KEYS: &[Key] = &[
    key("type", WORD, "`command`", "`vllm`, `command` or `task`; constructors set it"),
    key("model", WORD, "", "the model that it serves"),
    key("served_model_name", WORD, "`model`", "the name under which it serves it"),
];

/// What `gym.vllm` adds.
pub const VLLM_KEYS: &[Key] = &[
    key(
        "executable",
        Type::OneOf(&[Type::Path, Type::List(&WORD)]),
        "`vllm`",
        "the program, or the first words of argv",
    ),
    with("tensor_parallel_size", COUNT, "1", ""),
    with("pipeline_parallel_size", COUNT, "1", ""),
    with("number_of_instances", COUNT, "1", "data-parallel instances"),
    with("trust_remote_code", Type::Bool, "false", ""),
    later("use_ray_serve"),
    key(
        "extra_args",
        Type::OneOf(&[Type::List(&ARGUMENT), Type::Words]),
        "{}",
        "further arguments; text is split as a shell would, and refused where a shell would do more than split",
    ),
    with("data_parallel_rpc_port", Type::Port, "13345", "only with several instances"),
];

/// What `vllm` needs.
const VLLM_REQUIRED: &[Key] = &[required("model", WORD, "the model that it serves")];

/// `gym.vllm`.
pub const VLLM: Table = Table {
    title: "Services: `gym.vllm`, type `vllm`",
    parts: &[SERVICE_KEYS, VLLM_KEYS, VLLM_REQUIRED, PROCESS_KEYS],
    without: &[],
};

/// A service with a command of its own.
pub const COMMAND: Table =
    Table { title: "Services: type `command`", parts: &[SERVICE_KEYS, PROCESS_KEYS], without: &[] };

/// A task: ready when it has ended with 0.
pub const TASK: Table = Table {
    title: "Services: `gym.task`, type `task`",
    parts: &[SERVICE_KEYS, PROCESS_KEYS, &[TASK_HEALTH_CHECK]],
    without: &["metrics", "liveness"],
};

/// A task is ready when it ends: only how long that may take can be said.
const TASK_HEALTH_CHECK: Key = key(
    "health_check",
    Type::OneOf(&[Type::Off, Type::Table(&TASK_LIMIT)]),
    "no limit",
    "a task is ready when it ends with 0; `timeout_seconds` is the limit",
);

/// `health_check` of a task.
const TASK_LIMIT: Table = Table {
    title: "`health_check` of a task",
    parts: &[&[key("timeout_seconds", Type::Num(true), "none", "from spawn to its end")]],
    without: &[],
};

/// Any service.
pub const SERVICE: Choice = Choice {
    default: Some("command"),
    tables: &[("vllm", &VLLM), ("command", &COMMAND), ("task", &TASK)],
    later: &["vllm_pd", "ray"],
};
