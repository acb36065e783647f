-- A model over several GPUs of several stages.
local gym = require "gymrun"

return gym.job {
  name = "comet",
  site = { "hall" },
  services = { policy = gym.vllm { model = "org/huge", tensor_parallel_size = 4, pipeline_parallel_size = 3 } },
  driver = { policy_model = "policy", command = { "gym", "eval", "run" } },
}
