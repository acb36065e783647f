-- What the collector scrapes: the job's own processes that have metrics, and the exporters of the node.
local gym = require "gymrun"

local M = {}

-- One process with metrics: `metrics` is `{ port, path, scrape_interval_seconds, labels }`, all filled in but the interval.
local function of_process(job, name, metrics)
  local labels = { gym_service = name }
  for key, value in pairs(metrics.labels) do
    labels[key] = value
  end
  return {
    job_name = job.otel.component .. "/" .. name,
    targets = { "localhost:" .. metrics.port },
    labels = labels,
    metrics_path = metrics.path ~= "/metrics" and metrics.path or nil,
    scrape_interval_seconds = metrics.scrape_interval_seconds,
  }
end

-- `scraped` is a list of `{ name, metrics }`; `authored` the job's `scrape`.
function M.targets(job, scraped, authored)
  local targets = {}
  for _, process in ipairs(scraped) do
    targets[#targets + 1] = of_process(job, process.name, process.metrics)
  end
  if job.otel.gpu_metrics_port then
    targets[#targets + 1] = { job_name = "dcgm", port = job.otel.gpu_metrics_port, nodes = "all" }
  end
  if job.otel.node_metrics_port then
    targets[#targets + 1] = { job_name = "node", port = job.otel.node_metrics_port, nodes = "all" }
  end
  for _, target in ipairs(authored) do
    targets[#targets + 1] = target
  end
  return gym.list(targets)
end

return M
