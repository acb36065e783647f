"""The driver: sends rollouts to the agent, one after another, and writes what came back to ROLLOUTS_FILE, a line for each.

Each rollout is a trace of its own, linked to the trace of the job (TRACEPARENT), which would otherwise grow without end."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time

from servers.otlp import Telemetry, parse_traceparent, traceparent

CITIES = ("Bergen", "Cairo", "Nuuk", "Lima")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", required=True, help="URL of the agent's /run")
    parser.add_argument("--rollouts", type=int, default=8)
    arguments = parser.parse_args()

    # As an exception, so that what has been recorded is sent before the end.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    telemetry = Telemetry()
    try:
        with rollouts_file() as file:
            rewards = [rollout(telemetry, arguments.agent, index, file) for index in range(arguments.rollouts)]
    finally:
        telemetry.close()
    print("%d rollouts, mean reward %.2f" % (len(rewards), sum(rewards) / max(len(rewards), 1)), flush=True)


def rollouts_file():
    path = os.environ.get("ROLLOUTS_FILE", "rollouts.jsonl")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return open(path, "w", encoding="utf-8")


def rollout(telemetry, agent, index, file):
    """Runs one rollout as a trace of its own, and returns its reward."""
    job = parse_traceparent(os.environ.get("TRACEPARENT"))
    started = time.monotonic()
    with telemetry.span("rollout", "rollout", links=[job] if job else [], **{"rollout.index": index}):
        trace_id = (traceparent() or "").split("-")[1:2]
        result = telemetry.post(agent, {"city": CITIES[index % len(CITIES)]})
    seconds = time.monotonic() - started
    result.update({"index": index, "seconds": round(seconds, 3), "trace_id": "".join(trace_id)})
    file.write(json.dumps(result) + "\n")
    file.flush()
    print("rollout %d: reward %s in %.2f s" % (index, result["reward"], seconds), flush=True)
    return result["reward"]


if __name__ == "__main__":
    main()
