-- A fast scrape, sandbox spans, no shipped logs; the driver overrides two telemetry variables.
local gym = require "gymrun"

return gym.job {
  name = "sandboxed",
  site = { "hall" },
  services = { policy = gym.vllm { model = "tiny-chat" } },
  otel = { scrape_interval_seconds = 5, gym_span_groups = "default,verify,sandbox", gym_logs = false },
  driver = {
    policy_model = "policy",
    command = { "gym", "eval", "run" },
    env = { OTEL_EXPORTER_OTLP_PROTOCOL = "grpc", OTEL_EXPORTER_OTLP_ENDPOINT = "http://localhost:4317" },
  },
}
