-- The job's own scrape interval wins over the cluster's.
local gym = require "gymrun"

return gym.job {
  name = "arith",
  site = { "hall" },
  services = { policy = gym.vllm { model = "tiny-chat", tensor_parallel_size = 2 } },
  otel = { scrape_interval_seconds = 30 },
  driver = { policy_model = "policy", command = { "gym", "eval", "run" } },
}
