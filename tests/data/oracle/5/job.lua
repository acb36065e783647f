-- A model id with slashes, a served name, replicas, flags that need quoting, env of all three kinds.
local gym = require "gymrun"

return gym.job {
  name = "arith",
  site = { "hall" },
  services = {
    policy = gym.vllm {
      model = "some-org/chat model-7b",
      served_model_name = "chat/7b",
      tensor_parallel_size = 2,
      pipeline_parallel_size = 2,
      number_of_instances = 2,
      extra_args = { "--max-model-len", 8192, "--hf-overrides", '{"architectures":["A B"]}' },
      env = {
        HF_HOME = "/cache/hf home",
        HF_TOKEN = gym.secret "ORACLE_HF",
        NODE_RANK = gym.runtime("SLURM_NODEID", "0"),
      },
    },
  },
  driver = {
    policy_model = "policy",
    command = { "gym", "eval", "run" },
    env = { LANGUAGE = "it's", JOB = gym.runtime "SLURM_JOB_ID", API_KEY = gym.secret "ORACLE_HF" },
  },
}
