-- The smallest job with the default otel block.
local gym = require "gymrun"

return gym.job {
  name = "arith",
  site = { "hall" },
  services = { policy = gym.vllm { model = "tiny-chat" } },
  driver = { policy_model = "policy", command = { "gym", "eval", "run" } },
}
