-- Two model servers on one node; node exporters off; the collector without Gym's own telemetry.
local gym = require "gymrun"

return gym.job {
  name = "duel",
  site = { "hall" },
  services = {
    policy = gym.vllm {
      model = "tiny-chat",
      tensor_parallel_size = 2,
      trust_remote_code = true,
      health_check = { timeout_seconds = 1203 },
    },
    judge = gym.vllm {
      model = "tiny-judge",
      port = 8100,
      tensor_parallel_size = 4,
      health_check = { path = "/v1/models", timeout_seconds = 4 },
    },
  },
  otel = { gym_telemetry = false, gpu_metrics_port = false, node_metrics_port = false },
  driver = { policy_model = "policy", command = { "gym", "eval", "run" } },
}
