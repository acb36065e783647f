-- Three Gym-like servers and a driver, in Python's standard library alone: runs on any machine. `job.yaml` is the same job.
local gym = require "gymrun"

return gym.job {
  name = "quickstart",
  servers = {
    policy_model = gym.server {
      type = "responses_api_models",
      command = { "python3", "servers/model.py", "--port", gym.port() },
      metrics = true,
    },
    weather = gym.server {
      type = "resources_servers",
      command = { "python3", "servers/resources.py", "--port", gym.port() },
    },
    agent = gym.server {
      type = "responses_api_agents",
      command = { "python3", "servers/agent.py", "--port", gym.port() },
      env = { MODEL_URL = gym.url "policy_model", RESOURCES_URL = gym.url "weather" },
      depends_on = { "policy_model", "weather" },
    },
  },
  telemetry = {
    enabled = true,
    span_groups = "default,verify",
    logs_enabled = true,
    memory_profiling = { enabled = true, interval_seconds = 1 },
  },
  -- A run takes seconds, so metrics are scraped each second.
  otel = { scrape_interval_seconds = 1 },
  driver = {
    command = { "python3", "driver.py", "--agent", gym.url("agent", "/run"), "--rollouts", 8 },
    env = { ROLLOUTS_FILE = gym.job_dir "artifacts/rollouts.jsonl" },
  },
}
