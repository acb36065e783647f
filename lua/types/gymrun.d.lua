---@meta gymrun
-- Generated from the functions themselves; `GYMRUN_BLESS=1 cargo test --lib stubs` writes it anew.

---Text that is known at launch only. It can be joined with `..` and looked at in no other way.
---@class gymrun.Late
---@operator concat(string|integer|gymrun.Late): gymrun.Late

---The removal mark.
---@class gymrun.Unset

---Another server, in a server's `config`.
---@class gymrun.Peer

---A sequence without holes.
---@alias list any[]

---@class gymrun
local gymrun = {}

---A job: what a job file returns.
---@param fields table
---@return table
function gymrun.job(fields) end

---A site fragment: what a file in `site-fragments` returns.
---@param fields table
---@return table
function gymrun.site(fields) end

---A NeMo Gym server; `type` is `resources_servers`, `responses_api_agents`, `responses_api_models` or `environment_servers`.
---@param fields table
---@return table
function gymrun.server(fields) end

---A vLLM server: a service of type `vllm`.
---@param fields table
---@return table
function gymrun.vllm(fields) end

---vLLM with prefill and decode apart: a service of type `vllm_pd`. Not supported yet.
---@param fields table
---@return table
function gymrun.vllm_pd(fields) end

---A Ray cluster: a service of type `ray`. Not supported yet.
---@param fields table
---@return table
function gymrun.ray(fields) end

---A command that is ready when it has ended with 0: a service of type `task`.
---@param fields table
---@return table
function gymrun.task(fields) end

---Servers from Gym's own config files. Not supported yet.
---@param fields table
---@return table
function gymrun.environment(fields) end

---A driver that runs `gym eval run --no-serve` against the servers of the job: a driver of type `eval`.
---@param fields table
---@return table
function gymrun.eval(fields) end

---Sandboxes that the job asks for. Not supported yet.
---@param fields table
---@return table
function gymrun.sandbox(fields) end

---A sandbox provider. Not supported yet.
---@param fields table
---@return table
function gymrun.opensandbox(fields) end

---In the `config` of a server: a reference to another server, which also makes it a dependency.
---@param name string
---@return gymrun.Peer
function gymrun.peer(name) end

---A new table: `changes` laid over `base` as one layer over another (maps are merged, lists replaced, `gym.unset` removes). `base` may be a finished value.
---@param base table
---@param changes table
---@return table
function gymrun.extend(base, changes) end

---A variable of gymrun's own environment, read now. An unset one without a default is an error.
---@param name string
---@param default? string
---@return string
function gymrun.env(name, default) end

---A variable of gymrun's own environment that is read at launch and never printed or stored. Refused in `command`, `shell`, `files`, `attributes` and `labels`.
---@param name string
---@param default? string
---@return gymrun.Late
function gymrun.secret(name, default) end

---A variable of the environment where the process starts; `${env:NAME}` in collector.yaml.
---@param name string
---@param default? string
---@return gymrun.Late
function gymrun.runtime(name, default) end

---The port of a process (its own if none is named); with `key` one of its further `ports`.
---@param process? string
---@param key? string
---@return gymrun.Late
function gymrun.port(process, key) end

---The host of a process, seen from where the value is used: `127.0.0.1` on the same node.
---@param process? string
---@return gymrun.Late
function gymrun.host(process) end

---`http://HOST:PORT` of a process, and the path after it.
---@param process? string
---@param path? string
---@return gymrun.Late
function gymrun.url(process, path) end

---The absolute path of the job directory, or of something in it.
---@param sub? string
---@return gymrun.Late
function gymrun.job_dir(sub) end

---The absolute path of an entry of the job's `files`.
---@param name string
---@return gymrun.Late
function gymrun.file(name) end

---The job id.
---@return string
function gymrun.job_id() end

---One flat list of everything given; lists are opened, `nil` and `false` dropped, integers become text.
---@param ... any
---@return list
function gymrun.args(...) end

---The parts of a list as one text; late values may be among them.
---@param list list
---@param separator? string
---@return string|gymrun.Late
function gymrun.join(list, separator) end

---`string.format` in which `%s` also takes late values.
---@param text string
---@param ... any
---@return string|gymrun.Late
function gymrun.format(text, ...) end

---The text as one word of a shell.
---@param text string
---@return string
function gymrun.quote(text) end

---A new list of the items for which `keep` is true.
---@param list list
---@param keep fun(item: any): boolean
---@return list
function gymrun.filter(list, keep) end

---A copy that is a list even if it is empty.
---@param items table
---@return list
function gymrun.list(items) end

---The removal mark: takes away what the layers below say.
---@type gymrun.Unset
gymrun.unset = nil

---One JSON document, keys sorted. With late values in it, it may stand where a whole value of `env` or `files` is due.
---@param value any
---@return string|gymrun.Late
function gymrun.json(value) end

---The same as YAML.
---@param value any
---@return string|gymrun.Late
function gymrun.yaml(value) end

---Who runs the job.
---@return {name: string, uid: integer}
function gymrun.user() end

---The directory of this file, or the path of something beside it.
---@param path? string
---@return string
function gymrun.here(path) end

---A line on standard error when gymrun runs with `-v`. `print` is the same.
---@param ... any
function gymrun.log(...) end

return gymrun
