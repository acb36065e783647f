"""The model server: a language model that only ever asks for the weather, and then tells it.

It answers `/v1/responses` in the shape of OpenAI's Responses API, takes its time over it, and shows on `/metrics` what vLLM would show."""

from __future__ import annotations

import bisect
import threading
import time

from web import serve

MODEL = "quickstart-model"
FIRST_TOKEN_SECONDS = 0.2
TOKEN_SECONDS = 0.02
# As vLLM's: a name may hold a colon. gymrun's collector turns it into an underscore.
LATENCY_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FIRST_TOKEN_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0)


class Histogram:
    """Observations counted by upper bound; the last count is that of the endless bucket."""

    def __init__(self, bounds):
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value):
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value


class Metrics:
    """What `/metrics` shows, in the text format 0.0.4."""

    LABELS = 'engine="0",model_name="%s"' % MODEL

    def __init__(self):
        self.lock = threading.Lock()
        self.running = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished = {"stop": 0, "length": 0, "abort": 0}
        self.first_token = Histogram(FIRST_TOKEN_BUCKETS)
        self.latency = Histogram(LATENCY_BUCKETS)

    def page(self):
        with self.lock:
            lines = []
            self.family(lines, "vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", [("", self.running)])
            self.family(lines, "vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", [("", self.running * 0.125)])
            self.family(lines, "vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", [("", self.prompt_tokens)])
            self.family(lines, "vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", [("", self.generation_tokens)])
            finished = [(',finished_reason="%s"' % reason, count) for reason, count in self.finished.items()]
            self.family(lines, "vllm:request_success_total", "counter", "Count of successfully processed requests.", finished)
            self.histogram(lines, "vllm:time_to_first_token_seconds", "Time to first token in seconds.", self.first_token)
            self.histogram(lines, "vllm:e2e_request_latency_seconds", "End to end request latency in seconds.", self.latency)
            return "".join(lines)

    def family(self, lines, name, kind, about, samples):
        lines.append("# HELP %s %s\n# TYPE %s %s\n" % (name, about, name, kind))
        lines.extend("%s{%s%s} %s\n" % (name, self.LABELS, labels, float(value)) for labels, value in samples)

    def histogram(self, lines, name, about, histogram):
        lines.append("# HELP %s %s\n# TYPE %s histogram\n" % (name, about, name))
        total = 0
        for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts):
            total += count
            lines.append('%s_bucket{%s,le="%s"} %s\n' % (name, self.LABELS, bound, float(total)))
        lines.append("%s_count{%s} %s\n" % (name, self.LABELS, float(total)))
        lines.append("%s_sum{%s} %s\n" % (name, self.LABELS, histogram.sum))


def make_routes(telemetry):
    metrics = Metrics()

    def responses(request):
        started = time.monotonic()
        with metrics.lock:
            metrics.running += 1
        try:
            with telemetry.span("gym.model.responses", "model_call"):
                output = answer(request["input"])
                prompt, generated = len(str(request["input"])) // 4, len(str(output)) // 4
                time.sleep(FIRST_TOKEN_SECONDS)
                first_token = time.monotonic() - started
                time.sleep(generated * TOKEN_SECONDS)
        finally:
            with metrics.lock:
                metrics.running -= 1
        with metrics.lock:
            metrics.prompt_tokens += prompt
            metrics.generation_tokens += generated
            metrics.finished["stop"] += 1
            metrics.first_token.observe(first_token)
            metrics.latency.observe(time.monotonic() - started)
        return {"model": MODEL, "output": [output], "usage": {"input_tokens": prompt, "output_tokens": generated}}

    return {"/v1/responses": responses, "/metrics": ("text/plain; version=0.0.4; charset=utf-8", metrics.page)}


def answer(messages):
    """Calls the tool, or tells what the tool has said."""
    outputs = [message["output"] for message in messages if message.get("type") == "function_call_output"]
    if outputs:
        return {"type": "message", "role": "assistant", "text": "It is " + outputs[-1]}
    return {"type": "function_call", "name": "get_weather", "arguments": {"city": messages[0]["city"]}}


if __name__ == "__main__":
    serve("responses_api_models", make_routes)
