"""The HTTP side of the quickstart's servers: `/readyz`, JSON routes as server spans, and an orderly end on SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from otlp import SERVER, Telemetry, parse_traceparent

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(server_type, make_routes):
    """Serves until it is told to stop.

    `make_routes` gets the Telemetry and returns the routes: a path to a function from the request's JSON to the answer's, for POST. A path to a plain
    text function, for GET, is given as `("text/plain; ...", function)`."""
    # Blocked here, so that no thread is interrupted; taken by sigwait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port

    telemetry = Telemetry(server_type)
    routes = make_routes(telemetry)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its head

        def do_GET(self):
            if self.path == "/readyz":
                self.answer(200, b'{"status": "ok"}')
            elif isinstance(routes.get(self.path), tuple):
                content_type, page = routes[self.path]
                self.answer(200, page().encode(), content_type)
            else:
                self.answer(404, b'{"error": "no such path"}')

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            route = routes.get(self.path)
            if not callable(route):
                self.answer(404, b'{"error": "no such path"}')
                return
            names = {"http.request.method": "POST", "http.route": self.path}
            parent = parse_traceparent(self.headers.get("traceparent"))
            status, content = 500, b'{"error": "failed, see the log"}'
            try:
                with telemetry.span("POST " + self.path, "server", SERVER, parent, **names) as values:
                    values["http.response.status_code"] = 500
                    content = json.dumps(route(json.loads(body or b"{}"))).encode()
                    status = values["http.response.status_code"] = 200
            except Exception:
                logging.exception("POST %s failed", self.path)
            self.answer(status, content)

        def answer(self, status, content, content_type="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format, *args):
            """A line for each request would say no more than its span."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    logging.info("listening on port %d", port)
    logging.info("stopping on %s", signal.Signals(signal.sigwait(STOP_SIGNALS)).name)
    telemetry.close()  # the threads that serve are daemons: they end with the process
