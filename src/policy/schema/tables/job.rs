//! Keys of a job and of a site fragment (docs/api.md sections 3, 12, 15, 16).

use super::super::kinds::{
    ARGUMENT, Key, Keys, LABEL, LATE, PORT_NUMBER, TEXT, Table, TextRule, Type, WORD, key, later, required, with,
};
use super::process::{COLLECTOR_DEFAULTS, DEFAULTS_ALL, DEFAULTS_SERVERS, DEFAULTS_SERVICES, ENV};
use super::{DRIVER, OTEL, SERVER, SERVICE, TELEMETRY, driver};

/// A value that is stamped on resources.
const ATTRIBUTE: Type = Type::OneOf(&[LATE, Type::Int(i64::MIN, i64::MAX), Type::Bool]);
/// `attributes`.
pub const ATTRIBUTES: Type = Type::Map(Keys::Any, &ATTRIBUTE);
/// `scrape`.
pub const TARGETS: Type = Type::List(&Type::Table(&TARGET));
/// Contents of a file.
const CONTENTS: Type = Type::Document(TextRule { late: true, secret: false, integers: false, empty: true });

/// Keys that a job and a fragment share.
const SHARED: &[Key] = &[
    key("output_path", Type::Path, "`gymrun-jobs`", "the job directory is `<output_path>/<job id>/<name>/`"),
    key("telemetry", Type::Table(&TELEMETRY), "{}", "what Gym's processes report"),
    key("otel", Type::Table(&OTEL), "{}", "the collector"),
    later("slurm"),
    later("sandbox_providers"),
    key("process_defaults", Type::Table(&PROCESS_DEFAULTS), "{}", "keys of processes for many at once"),
    key("ports", Type::Table(&PORTS), "{}", "where `auto` picks"),
    key("stage", Type::List(&Type::Path), "{}", "paths that `gymrun submit` copies with the job"),
];

/// Keys of a job alone.
const JOB_KEYS: &[Key] = &[
    required("name", Type::JobName, "benchmark in directory and attribute"),
    key(
        "site",
        Type::List(&Type::JobName),
        "`$GYMRUN_SITE`, else `default`, else `local`",
        "site fragments, lowest first",
    ),
    key("time_limit_seconds", Type::Num(true), "none", "the job is ended in order after that, with exit code 124"),
    key(
        "services",
        Type::Map(Keys::Names, &Type::Choice(&SERVICE)),
        "{}",
        "supporting processes such as model servers",
    ),
    key("servers", Type::Map(Keys::Names, &Type::Choice(&SERVER)), "{}", "Gym servers"),
    later("environments"),
    later("sandboxes"),
    key("driver", Type::Choice(&DRIVER), "none: serve until told to stop", "its end is the end of the job"),
    key("attributes", ATTRIBUTES, "{}", "stamped on every resource"),
    key("scrape", TARGETS, "{}", "further Prometheus targets"),
    key("files", Type::Map(Keys::Files, &CONTENTS), "{}", "written to `<job dir>/files/` with mode 0600"),
    key("gym_config", Type::Map(Keys::Any, &Type::Tree), "{}", "top-level keys of `NEMO_GYM_CONFIG_DICT`"),
];

/// Keys of a fragment alone, but for hooks.
const SITE_KEYS: &[Key] = &[
    key("cluster", WORD, "name of the topmost fragment", "attribute `cluster`"),
    with("containers", Type::Word(&["use", "ignore", "refuse"]), "use", "what becomes of `container`"),
];

/// Hooks: functions, or tables that do the common thing.
const HOOK_KEYS: &[Key] = &[
    key("attributes", Type::OneOf(&[Type::Function, ATTRIBUTES]), "none", "hook: what is stamped; a map is merged"),
    key("scrape", Type::OneOf(&[Type::Function, TARGETS]), "none", "hook: what is scraped; a list is appended"),
    key("environment", Type::OneOf(&[Type::Function, ENV]), "none", "hook: variables of each process; a map is merged"),
    key("launch", Type::OneOf(&[Type::Function, Type::Table(&LAUNCH)]), "none", "hook: argv of each process"),
    key(
        "collector",
        Type::OneOf(&[Type::Function, Type::Map(Keys::Any, &Type::Tree)]),
        "none",
        "hook: the document of collector.yaml; a map is merged",
    ),
    later("process"),
    later("step"),
    later("check"),
    later("sbatch"),
];

/// A job.
pub const JOB: Table = Table { title: "Job: `gym.job`", parts: &[JOB_KEYS, SHARED], without: &[] };

/// A site fragment.
pub const SITE: Table = Table {
    title: "Site fragment: `gym.site`",
    parts: &[
        &[key(
            "extends",
            Type::OneOf(&[WORD, Type::List(&WORD)]),
            "none",
            "fragments below this one; each is used once",
        )],
        SITE_KEYS,
        SHARED,
        HOOK_KEYS,
    ],
    without: &[],
};

/// The hooks of a fragment.
pub const HOOKS: Table = Table { title: "Hooks", parts: &[HOOK_KEYS], without: &[] };

/// What the layers give together: a job with the keys of its site.
pub const EITHER: Table = Table { title: "Job and site", parts: &[JOB_KEYS, SHARED, SITE_KEYS], without: &[] };

/// `process_defaults`.
pub const PROCESS_DEFAULTS: Table = Table {
    title: "`process_defaults`",
    parts: &[&[
        key("all", Type::Table(&DEFAULTS_ALL), "{}", "for every process"),
        key("services", Type::Table(&DEFAULTS_SERVICES), "{}", "for every service"),
        key("servers", Type::Table(&DEFAULTS_SERVERS), "{}", "for every server"),
        key("driver", Type::Table(&driver::DEFAULTS), "{}", "for the driver"),
        key("collector", Type::Table(&COLLECTOR_DEFAULTS), "{}", "for the collector"),
    ]],
    without: &[],
};

/// `ports` of the job.
pub const PORTS: Table = Table {
    title: "`ports` of the job",
    parts: &[&[
        with("auto", Type::PortRange, "20000-29999", "where `auto` picks"),
        key("avoid", Type::List(&PORT_NUMBER), "{}", "never picked"),
    ]],
    without: &[],
};

/// A target of `scrape`.
pub const TARGET: Table = Table {
    title: "A target of `scrape`",
    parts: &[&[
        required("job_name", WORD, "Prometheus's `job`"),
        key("targets", Type::List(&LATE), "", "`host:port` each"),
        key("port", PORT_NUMBER, "", "a port on `nodes`, instead of `targets`"),
        with("nodes", WORD, "all", "`all`, `driver`, or a pool"),
        key("labels", Type::Map(Keys::Any, &LABEL), "{}", ""),
        key("scrape_interval_seconds", Type::Int(1, 86400), "the collector's", ""),
        key("metrics_path", WORD, "`/metrics`", ""),
        key("scheme", Type::Word(&["http", "https"]), "`http`", ""),
        key("params", Type::Map(Keys::Any, &Type::List(&LABEL)), "{}", "query parameters"),
        key("honor_labels", Type::Bool, "`false`", "labels of the page win"),
        key("bearer_env", Type::Variable, "none", "the variable with a bearer token"),
        key("relabel_configs", Type::List(&Type::Table(&RELABEL)), "{}", ""),
        key("metric_relabel_configs", Type::List(&Type::Table(&RELABEL)), "{}", ""),
    ]],
    without: &[],
};

/// A step of relabelling, as Prometheus has it.
pub const RELABEL: Table = Table {
    title: "`relabel_configs`, `metric_relabel_configs`",
    parts: &[&[
        key("source_labels", Type::List(&WORD), "", ""),
        key("separator", TEXT, "", ""),
        key("target_label", WORD, "", ""),
        key("regex", TEXT, "", ""),
        key("modulus", Type::Int(1, i64::MAX), "", ""),
        key("replacement", TEXT, "", ""),
        key(
            "action",
            Type::Word(&[
                "replace",
                "lowercase",
                "uppercase",
                "keep",
                "drop",
                "keepequal",
                "dropequal",
                "hashmod",
                "labelmap",
                "labeldrop",
                "labelkeep",
            ]),
            "`replace`",
            "",
        ),
    ]],
    without: &[],
};

/// The table form of the hook `launch`.
pub const LAUNCH: Table = Table {
    title: "Hook `launch` as a table",
    parts: &[&[required("prefix", Type::List(&ARGUMENT), "words in front of argv")]],
    without: &[],
};
