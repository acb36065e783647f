-- The document of collector.yaml: one collector beside the job. It scrapes, takes OTLP, stamps what dashboards filter on,
-- and sends to the endpoint and to files at the same time. Each signal has two pipelines: the tenant attribute is the
-- token itself, so it is added on the way to the endpoint and never on the way to the files.
local gym = require "gymrun"
local attribute_order = require("policy.attributes").order

local M = {}

local BUCKETS = { "250ms", "1s", "2s", "5s", "10s", "30s", "60s", "120s", "300s", "600s", "1800s" }

-- Each producer keeps its own name beside the name that the backend routes by.
local KEEP_NAME = 'set(resource.attributes["service.name.override"], resource.attributes["service.name"]) '
  .. 'where resource.attributes["service.name.override"] == nil and resource.attributes["service.name"] != nil'

-- `vllm:x` becomes `vllm_x` after parsing, so that histograms and counters stay what they are.
local RENAME_COLONS = [[replace_pattern(metric.name, "^([^:]+):(.+)$", "${1}_${2}")]]

local function seconds(value)
  return ("%ds"):format(value)
end

local function port(key)
  return gym.port("otel_collector", key)
end

local function upsert(key, value)
  return { key = key, value = value, action = "upsert" }
end

-- The actions of one resource processor: those of the dashboards in a fixed order, then any others by name.
local function stamps(job, attributes, first)
  local actions = { first }
  actions[#actions + 1] = upsert("service.name", job.otel.service_name)
  local done = {}
  for _, key in ipairs(attribute_order) do
    done[key] = true
    if attributes[key] ~= nil then
      actions[#actions + 1] = upsert(key, attributes[key])
    end
  end
  for key, value in pairs(attributes) do
    if not done[key] then
      actions[#actions + 1] = upsert(key, value)
    end
  end
  if attributes.slurm_job_id ~= nil then
    -- A reference that is digits only would arrive as a number.
    actions[#actions + 1] = { key = "slurm_job_id", action = "convert", converted_type = "string" }
  end
  return { attributes = actions }
end

local function scrape_config(job, target)
  local static = { targets = target.targets }
  if next(target.labels) ~= nil then
    static.labels = target.labels
  end
  local config = {
    job_name = target.job_name,
    scrape_interval = seconds(target.scrape_interval_seconds or job.otel.scrape_interval_seconds),
    static_configs = { static },
    metrics_path = target.metrics_path,
    scheme = target.scheme,
    honor_labels = target.honor_labels,
    params = target.params,
    relabel_configs = target.relabel_configs,
    metric_relabel_configs = target.metric_relabel_configs,
  }
  if target.bearer_env then
    config.authorization = { type = "Bearer", credentials = gym.secret(target.bearer_env) }
  end
  return config
end

local function receivers(job, targets)
  local all = {
    otlp = {
      protocols = {
        grpc = { endpoint = "127.0.0.1:" .. port "grpc", max_recv_msg_size_mib = 20 },
        http = { endpoint = "127.0.0.1:" .. port "http" },
      },
    },
  }
  if #targets > 0 then
    local configs = {}
    for _, target in ipairs(targets) do
      configs[#configs + 1] = scrape_config(job, target)
    end
    all.prometheus = { config = { scrape_configs = configs } }
  end
  return all
end

local function processors(job, attributes)
  local identity = { { context = "resource", statements = { KEEP_NAME } } }
  local all = {
    batch = {},
    ["resource/local"] = stamps(job, attributes),
    ["transform/identity"] = { metric_statements = identity, trace_statements = identity, log_statements = identity },
    ["transform/metric_names"] = { metric_statements = { { context = "metric", statements = { RENAME_COLONS } } } },
  }
  if job.otel.endpoint then
    local tenant
    if job.otel.token_env and job.otel.tenant_attribute then
      tenant = upsert(job.otel.tenant_attribute, gym.secret(job.otel.token_env))
    end
    all["resource/managed"] = stamps(job, attributes, tenant)
  end
  return all
end

local function managed_exporter(otel)
  local headers = {}
  for name, value in pairs(otel.headers) do
    headers[name] = value
  end
  if otel.token_env then
    headers.Authorization = otel.token_scheme .. " " .. gym.secret(otel.token_env)
  end
  local exporter = { endpoint = otel.endpoint }
  if next(headers) ~= nil then
    exporter.headers = headers
  end
  if next(otel.tls) ~= nil then
    exporter.tls = otel.tls
  end
  -- What the exporter does by itself is not said.
  if otel.compression ~= "gzip" then
    exporter.compression = otel.compression
  end
  if otel.timeout_seconds ~= 30 then
    exporter.timeout = ("%gs"):format(otel.timeout_seconds)
  end
  if otel.queue == "disk" then
    exporter.sending_queue = { storage = "file_storage" }
  end
  return exporter
end

local function exporters(job)
  local all = {}
  for _, signal in ipairs { "metrics", "traces", "logs" } do
    all["file/" .. signal] = { path = job.dir .. "/otel/" .. signal .. ".jsonl" }
  end
  if job.otel.endpoint then
    all["otlp_http/managed"] = managed_exporter(job.otel)
  end
  return all
end

local function pipelines(job, scrapes)
  local metrics = gym.args(scrapes and "prometheus", "otlp", "span_metrics")
  local named = { "transform/metric_names", "transform/identity" }
  local all = {}
  local function add(signal, from, before, files)
    all[signal .. "/local"] =
      { receivers = from, processors = gym.args(before, "resource/local", "batch"), exporters = files }
    if job.otel.endpoint then
      all[signal] = {
        receivers = from,
        processors = gym.args(before, "resource/managed", "batch"),
        exporters = { "otlp_http/managed" },
      }
    end
  end
  add("metrics", metrics, named, { "file/metrics" })
  add("traces", { "otlp" }, "transform/identity", { "file/traces", "span_metrics" })
  add("logs", { "otlp" }, "transform/identity", { "file/logs" })
  return all
end

-- An otelcol's own metrics say what it delivered; they are read just before the stop. Ours writes that by itself.
local function own_metrics(embedded)
  if embedded then
    return { level = "none" }
  end
  return { readers = { { pull = { exporter = { prometheus = { host = "127.0.0.1", port = port "metrics" } } } } } }
end

-- Who says it, stamped like all other data; an otelcol keeps it to its own page.
local function own_resource(job, attributes, embedded)
  if not embedded then
    return nil
  end
  local resource = {}
  for key, value in pairs(attributes) do
    local is_text = type(value) ~= "number" and type(value) ~= "boolean"
    resource[key] = is_text and value or tostring(value)
  end
  resource["service.name"] = job.otel.service_name
  resource["service.name.override"] = job.otel.service_name .. "/collector"
  return resource
end

-- `attributes` and `targets` as the hooks left them; every target has its `targets` and `labels`.
function M.document(job, attributes, targets, embedded)
  local stored = job.otel.endpoint and job.otel.queue == "disk"
  return {
    extensions = {
      health_check = { endpoint = "127.0.0.1:" .. port "health" },
      file_storage = stored and { directory = job.dir .. "/otel/queue", create_directory = true } or nil,
    },
    connectors = {
      span_metrics = {
        histogram = { explicit = { buckets = BUCKETS } },
        dimensions = { { name = "service.name.override" }, { name = "nemo.gym.sandbox.provider" } },
        metrics_flush_interval = seconds(job.otel.scrape_interval_seconds),
      },
    },
    receivers = receivers(job, targets),
    processors = processors(job, attributes),
    exporters = exporters(job),
    service = {
      extensions = gym.args("health_check", stored and "file_storage"),
      telemetry = {
        logs = { level = job.otel.log_level },
        metrics = own_metrics(embedded),
        resource = own_resource(job, attributes, embedded),
      },
      pipelines = pipelines(job, #targets > 0),
    },
  }
end

-- What only ours knows: what became of the data, as the last points of the metrics. collector.yaml stays one that an
-- otelcol takes.
local REPORT = "yaml:{service: {telemetry: {metrics: {report: [file/metrics]}}}}"

-- The command of the collector: `program` is ours, or an otelcol.
function M.command(job, program, embedded)
  local config = job.dir .. "/otel/collector.yaml"
  return gym.args(program, embedded and "collector", "--config", config, embedded and { "--config", REPORT })
end

return M
