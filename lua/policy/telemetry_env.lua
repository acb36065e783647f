-- The variables that switch telemetry on in a process and point it at the job's collector: NEMO_GYM_OTEL_* are Gym's own,
-- OTEL_* the SDK's. Services, servers and the driver get them; the collector does not.
local gym = require "gymrun"

local M = {}

local function switch(value)
  return value and "1" or "0"
end

-- A number as people write it: `1`, not `1.0`.
local function number(value)
  return math.type(value) == "float" and value == math.floor(value) and ("%d"):format(value) or tostring(value)
end

-- A value of OTEL_RESOURCE_ATTRIBUTES: everything but unreserved characters and `/` is percent-encoded.
local function encode(value)
  return (value:gsub("[^%w%-._~/]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end

-- Ours win over those that the variable holds already.
local function resource_attributes(attributes)
  local parts = {}
  for part in (os.getenv "OTEL_RESOURCE_ATTRIBUTES" or ""):gmatch "[^,]+" do
    local name = part:match "^%s*([^=]-)%s*="
    if name and attributes[name] == nil then
      parts[#parts + 1] = part:match "^%s*(.-)%s*$"
    end
  end
  for name, value in pairs(attributes) do
    parts[#parts + 1] = name .. "=" .. encode(value)
  end
  return table.concat(parts, ",")
end

-- Where the SDK sends. Gym's servers send logs by gRPC whatever the protocol is; others are told to do the same, unless the
-- author sends theirs elsewhere.
local function exporter(job, process, env)
  local http = "http://localhost:" .. gym.port("otel_collector", "http")
  local grpc = "http://localhost:" .. gym.port("otel_collector", "grpc")
  env.OTEL_EXPORTER_OTLP_ENDPOINT = job.otel.protocol == "grpc" and grpc or http
  env.OTEL_EXPORTER_OTLP_PROTOCOL = job.otel.protocol
  env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = grpc
  if process.env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT == nil then
    env.OTEL_EXPORTER_OTLP_LOGS_PROTOCOL = "grpc"
  end
  -- An inherited variable of one signal would win over those for all: data would go elsewhere, or nowhere.
  for _, signal in ipairs { "TRACES", "METRICS", "LOGS" } do
    for _, what in ipairs { "ENDPOINT", "PROTOCOL" } do
      local name = ("OTEL_EXPORTER_OTLP_%s_%s"):format(signal, what)
      if env[name] == nil and os.getenv(name) then
        env[name] = false
      end
    end
  end
end

function M.environment(job, process)
  local telemetry = job.telemetry
  if not telemetry.enabled then
    return { NEMO_GYM_OTEL_ENABLED = "0" }
  end
  local profiling = telemetry.memory_profiling
  local env = {
    NEMO_GYM_OTEL_ENABLED = "1",
    NEMO_GYM_OTEL_RUN_ID = telemetry.run_id,
    NEMO_GYM_OTEL_SPAN_GROUPS = telemetry.span_groups,
    NEMO_GYM_OTEL_EXPORTER = telemetry.exporter,
    NEMO_GYM_OTEL_TRACES_ENABLED = switch(telemetry.traces_enabled),
    NEMO_GYM_OTEL_METRICS_ENABLED = switch(telemetry.metrics_enabled),
    NEMO_GYM_OTEL_LOGS_ENABLED = switch(telemetry.logs_enabled),
    NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER = switch(telemetry.service_name_per_server),
    NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED = switch(profiling.enabled),
    NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS = number(profiling.interval_seconds),
    NEMO_GYM_OTEL_SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS = number(telemetry.sandbox_resource_sample_interval_seconds),
    -- A Gym server adds its own name; the driver counts as Gym.
    OTEL_SERVICE_NAME = telemetry.service_name,
  }
  local attributes = { ["nemo.gym.service_group"] = telemetry.service_name, ["nemo.run.id"] = telemetry.run_id }
  if process.kind == "service" and telemetry.service_name_per_server then
    env.OTEL_SERVICE_NAME = telemetry.service_name .. "/" .. process.name
  end
  if process.kind ~= "driver" then
    attributes["nemo.gym.server.name"] = process.name
    attributes["nemo.gym.server.type"] = process.kind == "service" and "service" or process.type
  end
  env.OTEL_RESOURCE_ATTRIBUTES = resource_attributes(attributes)
  if job.otel.enabled then
    exporter(job, process, env)
  end
  return env
end

return M
