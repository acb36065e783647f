local gym = require "gymrun"
return gym.job {
  name = "bad name!",
  tme_limit = 3,
  servers = {
    agent = gym.server { type = "responses_api_agent", comand = { "x" }, port = 8000.5, depends_on = { "nope", "b" }, env = { A = true, B = 1 } },
    b = gym.server { type = "resources_servers", command = { "x", nil, "y" }, depends_on = { "agent" } },
  },
  driver = { command = { "true" }, shell = "x", depends_on = { "b" }, grace_seconds = "3" },
}
