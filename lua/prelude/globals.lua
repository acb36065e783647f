-- The globals. The shipped policy gets Lua's own, less what reads files, compiled code or Lua's insides; authors get the
-- same behind proxies, so that no job changes what the policy or a fragment calls.

local host, values = ...

local next, type, ipairs, select, rawget, rawset, rawlen = next, type, ipairs, select, rawget, rawset, rawlen
local pcall, xpcall, load, setmetatable, getmetatable = pcall, xpcall, load, setmetatable, getmetatable
local sort = table.sort
local resume, close = coroutine.resume, coroutine.close
local data_of = values.data

for _, name in ipairs { "dofile", "loadfile", "collectgarbage", "warn", "require", "package" } do
  _G[name] = nil
end
string.dump = nil
getmetatable("").__metatable = "read-only"
os = { time = os.time, date = os.date, clock = os.clock, getenv = host.getenv }
print = host.print

-- Once the time is over, whoever catches the error gets it again.
local function limited(...)
  if host.expired() then
    host.stop()
  end
  return ...
end

function _G.pcall(...)
  return limited(pcall(...))
end

function _G.xpcall(...)
  return limited(xpcall(...))
end

function coroutine.resume(...)
  return limited(resume(...))
end

function coroutine.close(...)
  return limited(close(...))
end

-- Finalizers run where no hook is reached.
function _G.setmetatable(value, meta)
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    host.fail "finalizers (__gc) are not available"
  end
  return setmetatable(value, meta)
end

local RANK = { number = 1, string = 2, boolean = 3 }

local function before(a, b)
  local kind_a, kind_b = type(a), type(b)
  if kind_a ~= kind_b then
    return (RANK[kind_a] or 4) < (RANK[kind_b] or 4)
  end
  if kind_a == "number" or kind_a == "string" then
    return a < b
  end
  return kind_a == "boolean" and not a and b
end

-- By sorted key: what a job makes does not depend on how Lua hashes.
function _G.pairs(value)
  value = data_of(value)
  local meta = getmetatable(value)
  if type(meta) == "table" and meta.__pairs then
    return meta.__pairs(value)
  end
  local keys, count = {}, 0
  for key in next, value do
    count = count + 1
    keys[count] = key
  end
  sort(keys, before)
  local index = 0
  return function()
    while index < count do
      index = index + 1
      local item = rawget(value, keys[index])
      if item ~= nil then
        return keys[index], item
      end
    end
  end,
    value,
    nil
end

function _G.next(value, key)
  return next(data_of(value), key)
end

function _G.rawget(value, key)
  return rawget(data_of(value), key)
end

function _G.rawlen(value)
  return rawlen(data_of(value))
end

function _G.rawset(value, key, item)
  if data_of(value) ~= value then
    host.fail "a finished value is read-only"
  end
  return rawset(value, key, item)
end

-- Source text only; `environment` is what the chunk sees unless it is given one.
local function loader(environment)
  return function(chunk, name, _, ...)
    if select("#", ...) > 0 then
      return limited(load(chunk, name, "t", (...)))
    end
    return limited(load(chunk, name, "t", environment))
  end
end
_G.load = loader(_G)

-- Everything that is there now, library tables behind proxies.
local offered = {}
for name, value in next, _G do
  if type(value) == "table" and name ~= "_G" then
    value = values.library(value, name)
  end
  offered[name] = value
end
local offered_meta = { __index = offered, __metatable = "read-only" }

local globals = {}

-- The globals of one job or fragment; `require` finds files beside it.
function globals.author(require)
  local environment = setmetatable({}, offered_meta)
  rawset(environment, "_G", environment)
  rawset(environment, "require", require)
  rawset(environment, "load", loader(environment))
  return environment
end

-- The globals of the shipped policy.
function globals.policy(require)
  local environment = setmetatable({}, { __index = _G })
  rawset(environment, "require", require)
  return environment
end

return globals
