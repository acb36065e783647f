-- Servers only: nothing to scrape but the node exporters; the policy is an outside endpoint.
local gym = require "gymrun"

return gym.job {
  name = "remote",
  site = { "hall" },
  driver = { command = { "gym", "eval", "run", "+policy_base_url=https://api.example/v1" } },
}
