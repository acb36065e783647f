-- NeMo Gym's own servers and `gym eval run`: by hand, without Ray, head or launcher.
local gym = require "gymrun"

local M = {}

-- Health polls of gymrun would each become a trace of six spans.
local HEALTH_PATHS = "/(livez|readyz|healthz|health)?$"
-- Seconds: with the collector gone, a stop would hang for 40.
local EXPORT_TIMEOUT = "2"
-- Nothing listens there: servers started by hand ask for the keys, and never for the head.
local HEAD_SERVER = { host = "127.0.0.1", port = 11000 }

-- Without `root`, a Gym server finds its folder where its own Python finds nemo_gym, and becomes `python app.py` there.
local FIND_AND_EXEC = [[
import importlib.util, os, sys
# What watches for nemo_gym in a server is to watch the server, not this search.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "sitecustomize"]
found = importlib.util.find_spec("nemo_gym")
if found is None:
    sys.exit("gymrun: %s has no nemo_gym; set `python` or `root` of the server" % sys.executable)
package = found.origin and os.path.dirname(found.origin) or list(found.submodule_search_locations)[0]
folder = os.path.join(os.path.dirname(package), sys.argv[1], sys.argv[2])
if not os.path.isfile(os.path.join(folder, "app.py")):
    sys.exit("gymrun: there is no %s/app.py; check `type` and `implementation`" % folder)
os.chdir(folder)
os.environ["PWD"] = folder
os.execv(sys.executable, [sys.executable, "app.py"])
]]

-- The command of a server with `implementation`, and its directory (nil: it finds it itself).
function M.server_command(process, settings)
  if settings.root then
    return { settings.python, "app.py" }, ("%s/%s/%s"):format(settings.root, process.type, settings.implementation)
  end
  return { settings.python, "-c", FIND_AND_EXEC, process.type, settings.implementation }
end

function M.eval_command(settings)
  return { settings.executable, "eval", "run", "--no-serve" }
end

-- One server's entry in the document that all share.
local function instance(server)
  local block = { entrypoint = "app.py", host = gym.host(server.name), port = gym.port(server.name) }
  if server.num_workers > 1 then
    block.num_workers = server.num_workers
  end
  for key, value in pairs(server.config) do
    block[key] = value
  end
  return { [server.type] = { [server.implementation or server.name] = block } }
end

-- The document of all servers; `top` are the job's own top-level keys.
local function document(servers, top)
  local config = { head_server = HEAD_SERVER, dry_run = false }
  for key, value in pairs(top) do
    config[key] = value
  end
  for _, server in ipairs(servers) do
    config[server.name] = instance(server)
  end
  return config
end

-- Whether some environment server stands for the agent already.
local function has_environment(servers, agent)
  for _, server in ipairs(servers) do
    local peer = server.config.agent_server
    if server.type == "environment_servers" and type(peer) == "table" and peer.name == agent then
      return true
    end
  end
  return false
end

-- What `gym eval run` reads besides the servers: with the document in the environment its command line is ignored.
local function with_eval(config, servers, eval)
  if not has_environment(servers, eval.agent) then
    -- It posts to the agent's environment server, which only relays: the entry may carry the agent's own address.
    config[eval.agent .. "_environment"] = {
      environment_servers = {
        legacy_agent = {
          entrypoint = "app.py",
          host = gym.host(eval.agent),
          port = gym.port(eval.agent),
          agent_server = { type = "responses_api_agents", name = eval.agent },
        },
      },
    }
  end
  config.agent_name = eval.agent
  config.input_jsonl_fpath = eval.input
  config.output_jsonl_fpath = eval.output
  config.num_repeats = eval.repeats
  config.num_samples_in_parallel = eval.concurrency
  config.require_complete = eval.require_complete
  for key, value in pairs(eval.overrides) do
    config[key] = value
  end
  return config
end

-- In front of what the variable holds already.
local function prepend(first, name, separator)
  local inherited = os.getenv(name)
  if inherited == nil or inherited == "" then
    return first
  end
  return first .. separator .. inherited
end

-- Variables of every server and of `gym.eval` (`eval` is nil for servers).
function M.environment(job, process, servers, top, eval)
  local config = document(servers, top)
  local env = { PYTHONUNBUFFERED = "1" }
  if eval then
    config = with_eval(config, servers, eval)
  else
    env.NEMO_GYM_CONFIG_PATH = process.name
  end
  env.NEMO_GYM_CONFIG_DICT = gym.json(config)
  if job.telemetry.enabled then
    env.OTEL_PYTHON_FASTAPI_EXCLUDED_URLS = prepend(HEALTH_PATHS, "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", ",")
    env.OTEL_EXPORTER_OTLP_TIMEOUT = EXPORT_TIMEOUT
    if job.telemetry.lens_compat then
      env.PYTHONPATH = prepend(gym.job_dir "files/python", "PYTHONPATH", ":")
    end
  end
  return env
end

-- Variables of the driver. `policy` is `{ name, model }` of the policy model's process, if there is one.
function M.driver_environment(job, settings, policy)
  local env = { NEMO_GYM_BENCH_DIR = gym.job_dir() }
  if policy then
    local base = gym.url(policy.name)
    if settings.policy_host then
      base = "http://" .. settings.policy_host .. ":" .. gym.port(policy.name)
    end
    env.NEMO_GYM_POLICY_BASE_URL = base .. "/v1"
    env.NEMO_GYM_POLICY_MODEL_NAME = policy.model
    env.NEMO_GYM_POLICY_API_KEY = "dummy"
  end
  return env
end

return M
