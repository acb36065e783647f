-- The collector is off.
local gym = require "gymrun"

return gym.job {
  name = "long",
  site = { "hall" },
  services = { policy = gym.vllm { model = "tiny-chat", number_of_instances = 8, trust_remote_code = true } },
  otel = { enabled = false },
  driver = { policy_model = "policy", command = { "gym", "eval", "run" } },
}
