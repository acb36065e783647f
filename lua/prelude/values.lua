-- Frozen values: what constructors give back and what hooks are shown. A frozen table is a proxy; what it stands for, its
-- kind and its author's line are kept where no script reaches them.

local host = ...

local values = {}

local type, next, error, setmetatable, getmetatable = type, next, error, setmetatable, getmetatable

-- Deeper or larger is a mistake (or sharing that grows by itself), never a job.
local MAXIMUM_DEPTH = 64
local MAXIMUM_VALUES = 100000

-- proxy -> { data, kind, file, line, label, fields }
local hidden = setmetatable({}, { __mode = "k" })
-- tables that are lists even if they are empty
local lists = setmetatable({}, { __mode = "k" })

local meta = { __metatable = "read-only" }

function meta.__index(proxy, key)
  local info = hidden[proxy]
  local value = info.data[key]
  if value == nil and info.fields and not info.fields[key] then
    host.unknown_field(info.label, key, info.fields)
  end
  return value
end

function meta.__newindex(proxy)
  host.fail(
    ("%s is read-only"):format(hidden[proxy].label or "a finished value"),
    "change a copy: gym.extend(value, {...})"
  )
end

function meta.__pairs(proxy)
  return pairs(hidden[proxy].data)
end

function meta.__len(proxy)
  return #hidden[proxy].data
end

-- A proxy for `data`, which nobody else may hold.
local function wrap(data, info)
  local proxy = {}
  hidden[proxy] = {
    data = data,
    kind = info.kind,
    file = info.file,
    line = info.line,
    label = info.label,
    fields = info.fields,
  }
  if lists[data] then
    lists[proxy] = true
  end
  return setmetatable(proxy, meta)
end

-- The table behind a proxy, or the table itself.
function values.data(value)
  local info = hidden[value]
  return info and info.data or value
end

-- Rust looks into both.
values.hidden, values.lists = hidden, lists

local function copy_level(value, freeze, state, depth)
  if type(value) ~= "table" then
    return value
  end
  local info = hidden[value]
  local data = info and info.data or value
  if not info and getmetatable(value) ~= nil then
    host.fail("a table with a metatable is not a value", "give a plain table")
  end
  if state.open[data] then
    host.fail "a table that contains itself is not a value"
  end
  if depth > MAXIMUM_DEPTH then
    host.fail(("a value is nested deeper than %d tables"):format(MAXIMUM_DEPTH))
  end
  state.open[data] = true
  local out = {}
  for key, item in next, data do
    state.count = state.count + 1
    if state.count > MAXIMUM_VALUES then
      host.fail(("a value has more than %d parts"):format(MAXIMUM_VALUES))
    end
    out[key] = copy_level(item, freeze, state, depth + 1)
  end
  state.open[data] = nil
  if lists[value] then
    lists[out] = true
  end
  if freeze then
    return wrap(out, info or {})
  end
  return out
end

-- A deep copy that may be changed; nothing of it is shared.
function values.thaw(value)
  return copy_level(value, false, { open = {}, count = 0 }, 0)
end

-- A deep copy that may not be changed. `info` is of the outermost table; finished values inside keep theirs.
function values.freeze(value, info)
  local out = copy_level(value, true, { open = {}, count = 0 }, 0)
  for key, item in next, info do
    hidden[out][key] = item
  end
  return out
end

-- What a constructor gives back: frozen, with its kind and place, and its `type` if the constructor says one.
function values.finish(value, kind, type_name, file, line)
  local out = values.freeze(value, { kind = kind, file = file, line = line, label = "a finished value" })
  if type_name then
    hidden[out].data.type = type_name
  end
  return out
end

-- Freezes a table that nobody else holds, without a copy; finished values inside stay as they are.
local function seal(data, info)
  for key, item in next, data do
    if type(item) == "table" and not hidden[item] then
      data[key] = seal(item, {})
    end
  end
  return wrap(data, info)
end

-- A value that hooks are shown: `fields` (a set) are all that may be asked of its outermost table. It is made for that.
function values.show(value, label, fields)
  return seal(value, { label = label, fields = fields })
end

-- A library table that authors can read and not change.
function values.library(data, label)
  return wrap(data, { label = label })
end

-- Marks a copy of a list as a list, even if it is empty.
function values.list(value)
  local out = {}
  for index, item in next, values.data(value) do
    out[index] = item
  end
  lists[out] = true
  return out
end

function values.filter(value, keep)
  local out = {}
  for _, item in ipairs(value) do
    if keep(item) then
      out[#out + 1] = item
    end
  end
  lists[out] = true
  return out
end

return values
