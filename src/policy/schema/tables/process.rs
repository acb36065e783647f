//! Keys of every process (docs/api.md sections 4 and 8).

use super::super::kinds::{
    ARGUMENT, COUNT, Key, Keys, LABEL, LATE, TEXT, Table, Type, VARIABLE_VALUE, WORD, key, later, with,
};

/// `env`.
pub const ENV: Type = Type::Map(Keys::Variables, &VARIABLE_VALUE);

/// `log_max_bytes`. A smaller one is most likely meant in other units.
const LOG_MAX_BYTES: Key = key(
    "log_max_bytes",
    Type::Int(1000, i64::MAX),
    "none",
    "no log file is larger: a new one is begun, at the end of a line where that is possible; needs `log = \"pipe\"`",
);
/// `log_keep`.
const LOG_KEEP: Key = with(
    "log_keep",
    Type::Int(1, 1000),
    "3",
    "how many older log files stay: `<process>.log.1` (the newest of them), `.2`, ...",
);

/// Keys of every process.
pub const PROCESS_KEYS: &[Key] = &[
    key(
        "command",
        Type::List(&ARGUMENT),
        "by kind",
        "argv, no shell; exactly one of `command`, `shell`, or a kind that makes its own",
    ),
    key(
        "shell",
        WORD,
        "",
        "text for `bash -c`, instead of `command`; what is known at launch only comes through `env`",
    ),
    with("pre_command", TEXT, "", "bash text that runs before, in the same shell"),
    key("cwd", Type::Path, "directory of the job file", "working directory"),
    key(
        "env",
        ENV,
        "{}",
        "variables of the process; they win over everything that gymrun and hooks set; `false` (YAML `!off`) takes one away",
    ),
    key("port", Type::Port, "by kind", "the port it listens on; a number is kept or the job fails naming the holder"),
    key(
        "ports",
        Type::Map(Keys::Names, &Type::Port),
        "{}",
        "further ports: `gym.port(\"name\", \"key\")`, `${port:name.key}`",
    ),
    key("depends_on", Type::List(&Type::Name), "{}", "started when those are ready"),
    key(
        "health_check",
        Type::OneOf(&[Type::Off, Type::Table(&HEALTH_CHECK)]),
        "by kind",
        "how one finds out that it is ready",
    ),
    key(
        "liveness",
        Type::OneOf(&[Type::Off, Type::Table(&LIVENESS)]),
        "off",
        "asked for as long as it is ready: one that gives too many bad answers is stopped, and `on_exit` decides",
    ),
    with(
        "on_exit",
        Type::Word(&["stop", "restart", "ignore"]),
        "stop",
        "an exit that nobody asked for, 0 too, never getting ready, and hanging: `stop` ends the job; `restart` starts it again on its port; `ignore` is a warning, and those that depend on it are not started",
    ),
    key("restart", Type::Table(&RESTART), "{}", "how often and when; only with `on_exit = \"restart\"`"),
    key("stop_signal", Type::Signal, "by kind", "the signal that stops it; `SIG` in front is allowed"),
    key("grace_seconds", Type::Num(false), "by kind", "seconds until KILL goes to its whole tree"),
    key(
        "log",
        Type::Word(&["file", "pipe"]),
        "`file`; driver `pipe`",
        "`file`: it owns its log file; `pipe`: its output is also shown",
    ),
    LOG_MAX_BYTES,
    LOG_KEEP,
    key(
        "metrics",
        Type::OneOf(&[Type::Bool, Type::Table(&METRICS)]),
        "by kind",
        "whether its Prometheus page is scraped",
    ),
    key(
        "gpus",
        Type::OneOf(&[Type::Int(0, 1024), Type::List(&Type::Int(0, 1023)), Type::Off]),
        "all of the node",
        "sets `CUDA_VISIBLE_DEVICES`: how many, or which; no two processes may list the same",
    ),
    later("container"),
    later("mounts"),
    later("node_pool"),
    later("node"),
];

/// The table of what every process has.
pub const PROCESS: Table = Table { title: "Every process", parts: &[PROCESS_KEYS], without: &[] };

/// `metrics` in its long form.
pub const METRICS: Table = Table {
    title: "`metrics` of a process",
    parts: &[&[
        key("port", Type::LatePort, "the process's own", "port of the page"),
        with("path", WORD, "/metrics", "path of the page"),
        key("scrape_interval_seconds", Type::Int(1, 86400), "the collector's", ""),
        key("labels", Type::Map(Keys::Any, &LABEL), "{}", "labels of every series"),
    ]],
    without: &[],
};

/// What a probe asks.
const QUESTION_KEYS: &[Key] = &[
    with("type", Type::Word(&["http", "tcp", "exec", "grpc"]), "http", "what is asked"),
    key(
        "path",
        Type::OneOf(&[WORD, Type::List(&WORD)]),
        "`/health`, or by kind",
        "of a list the first that is not answered 404 or 405 decides",
    ),
    key(
        "statuses",
        Type::OneOf(&[Type::Word(&["any"]), Type::List(&Type::Status)]),
        "`[\"200-299\"]`",
        "what counts as a good answer",
    ),
    key("port", Type::LatePort, "the process's own", ""),
    key("host", LATE, "the process's own", ""),
    key("command", Type::List(&ARGUMENT), "", "`exec`: good when it ends with 0"),
    with("service", TEXT, "", "`grpc`: the service asked for"),
    with("request_timeout_seconds", Type::Num(true), "5", "limit of one probe"),
];

/// `health_check`.
pub const HEALTH_CHECK: Table = Table {
    title: "`health_check` of a process",
    parts: &[
        QUESTION_KEYS,
        &[
            key("timeout_seconds", Type::Num(true), "60, or by kind", "from spawn to ready"),
            key("interval_seconds", Type::Num(true), "0.01 growing to 0.04", "between two probes"),
        ],
    ],
    without: &[],
};

/// `liveness`.
pub const LIVENESS: Table = Table {
    title: "`liveness` of a process",
    parts: &[
        QUESTION_KEYS,
        &[
            with("interval_seconds", Type::Num(true), "10", "between two probes"),
            with(
                "failure_threshold",
                COUNT,
                "3",
                "that many bad answers in a row (none in time, a refused connection, a wrong status): it is stopped",
            ),
        ],
    ],
    without: &[],
};

/// `restart`.
pub const RESTART: Table = Table {
    title: "`restart` of a process",
    parts: &[&[
        with("limit", Type::Int(0, 1_000_000), "5", "at most that many times"),
        with("window_seconds", Type::Num(true), "300", "within this time"),
        with(
            "backoff_seconds",
            Type::Num(false),
            "1",
            "from its end to the first new start; doubled with each further one",
        ),
        with("backoff_max_seconds", Type::Num(false), "30", "the greatest back-off"),
        with(
            "also_dependants",
            Type::Bool,
            "false",
            "those that need it, directly or not, are stopped before and started again after it",
        ),
        with("exhausted", Type::Word(&["stop", "ignore"]), "stop", "what one end too many does, as for `on_exit`"),
    ]],
    without: &[],
};

/// `process_defaults.all`.
pub const DEFAULTS_ALL: Table = Table { title: "`process_defaults.all`", parts: &[PROCESS_KEYS], without: &[] };

/// `process_defaults.services`.
pub const DEFAULTS_SERVICES: Table = Table {
    title: "`process_defaults.services`",
    parts: &[PROCESS_KEYS, super::service::SERVICE_KEYS, super::service::VLLM_KEYS],
    without: &["type"],
};

/// `process_defaults.servers`.
pub const DEFAULTS_SERVERS: Table = Table {
    title: "`process_defaults.servers`",
    parts: &[PROCESS_KEYS, super::server::SERVER_KEYS],
    without: &["type"],
};

/// `process_defaults.collector`.
pub const COLLECTOR_DEFAULTS: Table = Table {
    title: "`process_defaults.collector`",
    parts: &[&[
        key("env", ENV, "{}", "variables of the collector"),
        key("log", Type::Word(&["file", "pipe"]), "`file`", ""),
        LOG_MAX_BYTES,
        LOG_KEEP,
        key("stop_signal", Type::Signal, "`TERM`", ""),
    ]],
    without: &[],
};
