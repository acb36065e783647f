-- What is executed for `shell` and `pre_command`.
local gym = require "gymrun"

local M = {}

-- `shell`: bash text; what follows it on the command line is "$@".
function M.shell(text, pre_command)
  if pre_command ~= "" then
    text = pre_command .. "\n" .. text
  end
  return { "bash", "-c", text, "bash" }
end

-- A command after bash text in the same shell, which it then replaces.
function M.with_pre_command(pre_command, command)
  return gym.args("bash", "-c", pre_command .. '\nexec "$@"', "bash", command)
end

return M
