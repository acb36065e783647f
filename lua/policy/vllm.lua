-- The command line of a vLLM server.
local gym = require "gymrun"

local M = {}

function M.command(process, settings)
  local served = settings.served_model_name
  return gym.args(
    process.executable,
    "serve",
    process.model,
    "--port",
    process.port,
    "--tensor-parallel-size",
    settings.tensor_parallel_size,
    served ~= process.model and { "--served-model-name", served },
    settings.pipeline_parallel_size > 1 and { "--pipeline-parallel-size", settings.pipeline_parallel_size },
    settings.extra_args,
    settings.number_of_instances > 1 and { "--data-parallel-size", settings.number_of_instances },
    settings.trust_remote_code and "--trust-remote-code"
  )
end

return M
