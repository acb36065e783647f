-- This machine, no site: the embedded collector writes files only, nothing is asked of the node.
local gym = require "gymrun"

return gym.site {
  cluster = "local",
  otel = { endpoint = false, service_name = "nemo-gym", gpu_metrics_port = false, node_metrics_port = false },
}
