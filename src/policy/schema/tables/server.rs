//! Keys of Gym servers (docs/api.md section 6).

use super::super::kinds::{COUNT, Choice, Key, Keys, Table, Type, WORD, key, later, required, with};
use super::process::PROCESS_KEYS;

/// Keys of every server.
pub const SERVER_KEYS: &[Key] = &[
    required(
        "type",
        WORD,
        "`resources_servers`, `responses_api_agents`, `responses_api_models` or `environment_servers`",
    ),
    key(
        "implementation",
        WORD,
        "",
        "runs `<python> app.py` in `<root>/<type>/<implementation>`; not beside `command`, `shell`, `cwd`",
    ),
    with("python", Type::Path, "python", "the interpreter"),
    key("root", Type::Path, "where that Python's nemo_gym lies", "the directory with the server types"),
    key(
        "config",
        Type::Map(Keys::Any, &Type::Tree),
        "{}",
        "the instance's block of `NEMO_GYM_CONFIG_DICT`; `entrypoint`, `host`, `port` are added; `gym.peer(name)` is another server's `{type, name}` and a dependency",
    ),
    with("num_workers", COUNT, "1", "Uvicorn workers"),
    later("prefork"),
    later("ray"),
];

/// A server of any type.
pub const SERVER_BASE: Table =
    Table { title: "Servers: `gym.server`", parts: &[SERVER_KEYS, PROCESS_KEYS], without: &[] };

/// Any server.
pub const SERVER: Choice = Choice {
    default: None,
    tables: &[
        ("resources_servers", &SERVER_BASE),
        ("responses_api_agents", &SERVER_BASE),
        ("responses_api_models", &SERVER_BASE),
        ("environment_servers", &SERVER_BASE),
    ],
    later: &[],
};
