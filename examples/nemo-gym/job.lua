-- NeMo Gym's example_single_tool_call: real servers, no Ray, no head; the policy is a stub endpoint.
local gym = require "gymrun"

-- A venv of CPython 3.13 with `nemo-gym[telemetry]==0.7.0`: README.md has the two commands.
local venv = gym.env("GYM_VENV", gym.here "venv")

return gym.job {
  name = "example-single-tool-call",
  -- A server sends its last telemetry within two seconds of the stop; a busy machine may take longer.
  process_defaults = { servers = { python = venv .. "/bin/python", grace_seconds = 15 } },
  services = {
    policy = {
      command = { venv .. "/bin/python", "stub_policy.py", "--port", gym.port() },
      port = "auto",
      health_check = { path = "/v1/models", timeout_seconds = 10 },
      model = "stub-model", -- so that it can be the policy model
    },
  },
  servers = {
    -- With `implementation`, command and cwd follow; `config` is the instance's block in NEMO_GYM_CONFIG_DICT.
    example_single_tool_call = gym.server {
      type = "resources_servers",
      implementation = "example_single_tool_call",
    },
    my_agent = gym.server {
      type = "responses_api_agents",
      implementation = "simple_agent",
      config = {
        resources_server = gym.peer "example_single_tool_call", -- also makes it a dependency
        model_server = gym.peer "policy_model",
      },
    },
    policy_model = gym.server {
      type = "responses_api_models",
      implementation = "openai_model",
      config = { openai_base_url = gym.url("policy", "/v1"), openai_api_key = "dummy", openai_model = "stub-model" },
      depends_on = { "policy" },
    },
  },
  telemetry = { enabled = true, span_groups = "default,verify", memory_profiling = { enabled = true } },
  driver = gym.eval {
    agent = "my_agent",
    input = "tasks.jsonl",
    output = gym.job_dir "artifacts/rollouts.jsonl",
    repeats = 2,
    concurrency = 4,
    require_complete = true,
    executable = venv .. "/bin/gym",
  },
}
