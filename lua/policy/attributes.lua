-- What is stamped on every resource of the job: who, which run, which benchmark, where. `service.name` and the tenant
-- attribute are the collector's own (collector.lua).
local gym = require "gymrun"

local M = {}

-- The order in which they stand in collector.yaml; others follow by name.
M.order = { "user", "run_id", "slurm_job_id", "benchmark", "cluster", "model" }

-- `authored` is the job's `attributes`.
function M.attributes(job, authored)
  local attributes = {
    user = job.user,
    run_id = job.id,
    -- Known in the allocation only; an unset variable would keep the collector from starting.
    slurm_job_id = job.slurm.allocated and gym.runtime "SLURM_JOB_ID" or nil,
    benchmark = job.name,
    cluster = job.cluster,
    model = job.model,
  }
  for name, value in pairs(authored) do
    attributes[name] = value
  end
  return attributes
end

return M
