"""OpenTelemetry for the quickstart: spans and logs as OTLP/JSON over HTTP, with Python's standard library alone.

A stand-in for what a NeMo Gym server has built in. All of it is told by the environment, as in NeMo Gym:

- `NEMO_GYM_OTEL_ENABLED`, `_TRACES_ENABLED`, `_LOGS_ENABLED`, `_SPAN_GROUPS`: what is sent;
- `OTEL_EXPORTER_OTLP_ENDPOINT`: where to (`/v1/traces` and `/v1/logs` below it), unset: nowhere;
- `QUICKSTART_REQUEST_SECONDS`: how long a request may take, one second if unset;
- `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `NEMO_GYM_OTEL_RUN_ID`: who sends. A server adds its own name (`GYMRUN_NAME`) to the service name.

Every span and record is handed to one background thread, which sends what there is once a second and once more at the end. That thread can fail, be
slow or find nobody: no request waits for it, and `close` returns in the time of two requests whatever it does.
"""

from __future__ import annotations

import contextlib
import contextvars
import http.client
import json
import logging
import os
import re
import secrets
import socket
import sys
import threading
import time
import urllib.parse

INTERNAL, SERVER, CLIENT = 1, 2, 3  # the kinds of span that are used here

PRESETS = {
    "default": {"job", "server", "http_client", "rollout"},
    "per_rollout": {"server", "http_client", "rollout", "verify", "agent", "model_call"},
    "all": {"job", "server", "http_client", "rollout", "verify", "agent", "model_call", "sandbox"},
}

SEVERITIES = {"DEBUG": 5, "INFO": 9, "WARNING": 13, "ERROR": 17, "CRITICAL": 21}

# The ids of the span that the running code belongs to: (trace id, span id) in hex.
_current: contextvars.ContextVar = contextvars.ContextVar("current", default=None)


def setting(name, default):
    """The value of `NEMO_GYM_OTEL_<name>`, of `NEMO_LENS_<name>`, or the default."""
    return os.environ.get("NEMO_GYM_OTEL_" + name) or os.environ.get("NEMO_LENS_" + name) or default


def is_on(name, default):
    """Whether a switch is on; spelled as NeMo Gym reads it."""
    return setting(name, default).strip().lower() in ("1", "true", "yes", "on")


def parse_traceparent(text):
    """The ids in a `traceparent` header or variable, or None if it is not one."""
    match = re.fullmatch(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", (text or "").strip())
    return match.groups() if match else None


def traceparent():
    """The running span as a `traceparent` header, or None outside of any."""
    ids = _current.get()
    return "00-%s-%s-01" % ids if ids else None


def attributes(values):
    """A dictionary as OTLP's list of attributes."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds.get(type(value), "stringValue"): str(value) if type(value) is int else value}}
        for key, value in values.items()
    ]


class Telemetry:
    """What one process sends. `server_type` is given by servers and not by the driver, which reports as the group alone."""

    def __init__(self, server_type=None):
        enabled = is_on("ENABLED", "0") and bool(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"))
        self.traces = enabled and is_on("TRACES_ENABLED", "1")
        self.logs = enabled and is_on("LOGS_ENABLED", "0")
        self.groups = set()
        for word in setting("SPAN_GROUPS", "default").split(","):
            self.groups |= PRESETS.get(word.strip(), {word.strip()})
        self.exporter = Exporter(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], resource(server_type)) if enabled else None

        # Lines go to standard error in any case, where gymrun keeps them.
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        if self.logs:
            logging.getLogger().addHandler(LogHandler(self.exporter))

    @contextlib.contextmanager
    def span(self, name, group, kind=INTERNAL, parent=None, links=(), **values):
        """Runs its body in a new span, below `parent` or else below the running span; yields the span's attributes, to be added to.

        Where traces or the group are off no span is made, and its children hang below its parent."""
        parent = parent or _current.get()
        recorded = self.traces and group in self.groups
        ids = (parent[0] if parent else secrets.token_hex(16), secrets.token_hex(8)) if recorded else parent
        token = _current.set(ids)
        start, error = time.time_ns(), None
        try:
            yield values
        except Exception as exception:
            error = "%s: %s" % (type(exception).__name__, exception)
            raise
        finally:
            _current.reset(token)
            if recorded:
                span = {
                    "traceId": ids[0],
                    "spanId": ids[1],
                    "name": name,
                    "kind": kind,
                    "startTimeUnixNano": str(start),
                    "endTimeUnixNano": str(time.time_ns()),
                    "attributes": attributes(values),
                    "links": [{"traceId": link[0], "spanId": link[1]} for link in links],
                    "status": {"code": 2, "message": error} if error else {},
                }
                if parent:
                    span["parentSpanId"] = parent[1]
                self.exporter.add("traces", span)

    def post(self, url, body):
        """Posts JSON to another server of the job and returns its answer, as a span that the other side continues.

        An answer other than 200 is an error. http.client knows no proxies, and these are loopback calls."""
        target = urllib.parse.urlsplit(url)
        names = {"http.request.method": "POST", "url.full": url}
        with self.span("HTTP POST", "http_client", CLIENT, **names) as values:
            headers = {"Content-Type": "application/json"}
            if traceparent():
                headers["traceparent"] = traceparent()
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=30)
            try:
                connection.request("POST", target.path or "/", json.dumps(body), headers)
                response = connection.getresponse()
                content = response.read()
            finally:
                connection.close()
            values["http.response.status_code"] = response.status
            if response.status != 200:
                raise RuntimeError("%s answered %d: %s" % (url, response.status, content[:200].decode("utf-8", "replace")))
            return json.loads(content)

    def close(self):
        """Sends what is left; called once, at the end of the process."""
        if self.exporter:
            self.exporter.close()


def resource(server_type):
    """Who sends: the same for all spans and records of a process."""
    values = {}
    for pair in filter(None, os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")):
        key, _, value = pair.partition("=")
        values[urllib.parse.unquote(key.strip())] = urllib.parse.unquote(value.strip())
    group = os.environ.get("OTEL_SERVICE_NAME") or "nemo-gym"
    values.update({"service.name": group, "nemo.gym.service_group": group, "host.name": socket.gethostname(), "process.pid": os.getpid()})
    if setting("RUN_ID", ""):
        values["nemo.run.id"] = setting("RUN_ID", "")
    if server_type:
        name = os.environ.get("GYMRUN_NAME") or server_type
        values.update({"nemo.gym.server.name": name, "nemo.gym.server.type": server_type})
        if is_on("SERVICE_NAME_PER_SERVER", "1"):
            values["service.name"] = group + "/" + name
    return values


class Exporter(threading.Thread):
    """The background thread that sends. Items wait in lists by signal: `traces` and `logs`."""

    INTERVAL_SECONDS = 1.0
    REQUEST_SECONDS = float(os.environ.get("QUICKSTART_REQUEST_SECONDS") or 1)
    CLOSE_SECONDS = 2 * REQUEST_SECONDS
    LIMIT = 10_000  # items of a signal that may wait while nobody takes them

    ENVELOPES = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}

    def __init__(self, endpoint, values):
        super().__init__(name="exporter", daemon=True)
        self.endpoint = urllib.parse.urlsplit(endpoint)
        self.resource = {"attributes": attributes(values)}
        self.waiting = {signal: [] for signal in self.ENVELOPES}
        self.lost = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.start()

    def add(self, signal, item):
        with self.lock:
            if len(self.waiting[signal]) < self.LIMIT:
                self.waiting[signal].append(item)
            else:
                self.lost += 1

    def run(self):
        while not self.closing.wait(self.INTERVAL_SECONDS):
            self.flush()
        self.flush()

    def flush(self):
        for signal in self.ENVELOPES:
            with self.lock:
                items, self.waiting[signal] = self.waiting[signal], []
            if not items:
                continue
            try:
                status = self.send(signal, items)
            except (OSError, http.client.HTTPException):
                status = 503
            with self.lock:
                if status in (429, 502, 503, 504):  # may be taken later
                    self.waiting[signal][:0] = items
                elif status != 200:
                    self.lost += len(items)

    def send(self, signal, items):
        resources, scopes, name = self.ENVELOPES[signal]
        body = {resources: [{"resource": self.resource, scopes: [{"scope": {"name": "quickstart"}, name: items}]}]}
        connection = http.client.HTTPConnection(self.endpoint.hostname, self.endpoint.port or 4318, timeout=self.REQUEST_SECONDS)
        try:
            path = self.endpoint.path.rstrip("/") + "/v1/" + signal
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def close(self):
        self.closing.set()
        self.join(self.CLOSE_SECONDS)
        with self.lock:
            lost = self.lost + sum(map(len, self.waiting.values()))
        if lost or self.is_alive():
            print("telemetry: %d spans and records were not sent" % lost, file=sys.stderr, flush=True)


class LogHandler(logging.Handler):
    """Python's logging as OTLP records, each with the span that it was written in."""

    def __init__(self, exporter):
        super().__init__()
        self.exporter = exporter

    def emit(self, record):
        ids = _current.get() or ("", "")
        self.exporter.add(
            "logs",
            {
                "timeUnixNano": str(int(record.created * 1e9)),
                "observedTimeUnixNano": str(time.time_ns()),
                "severityNumber": SEVERITIES.get(record.levelname, 0),
                "severityText": record.levelname,
                "body": {"stringValue": record.getMessage()},
                "attributes": attributes({"code.file.path": record.pathname, "code.line.number": record.lineno}),
                "traceId": ids[0],
                "spanId": ids[1],
            },
        )
