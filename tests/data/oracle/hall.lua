-- The cluster of the reference configurations: an ingest endpoint, the reference collector, both exporters on the node.
local gym = require "gymrun"

return gym.site {
  output_path = "/lustre/out",
  otel = {
    endpoint = "https://ingest.example/otlp",
    service_name = "evals",
    binary = "otelcol-contrib",
    ports = { grpc = 4317, http = 4318, health = 13133 },
  },
}
