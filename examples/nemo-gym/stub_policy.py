"""A policy endpoint that needs no model: it speaks enough of OpenAI's API for NeMo Gym, calls the first tool that it is offered once, and then answers.

Python's standard library alone. `GET /v1/models`, `POST /v1/responses`, `POST /v1/chat/completions`."""

import argparse
import itertools
import json
import re
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "stub-model"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

numbers = itertools.count(1)


def text_of(content):
    """The text of a message's content, which is text or a list of parts."""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or [])


def tool_arguments(parameters, messages):
    """Arguments for a tool: whatever it asks for is the place that the user named."""
    question = " ".join(text_of(message.get("content")) for message in messages if message.get("role") == "user")
    place = re.search(r"\bin ([A-Z]\w+)", question)
    return json.dumps({name: place.group(1) if place else "Oslo" for name in parameters.get("required", [])})


def responses(request):
    """OpenAI's Responses API: the conversation is a list of items, tool calls and their outputs among them."""
    items = request["input"]
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    number = next(numbers)
    if request.get("tools") and not outputs:
        tool = request["tools"][0]
        output = {
            "type": "function_call",
            "id": "fc_%d" % number,
            "call_id": "call_%d" % number,
            "name": tool["name"],
            "arguments": tool_arguments(tool["parameters"], items),
            "status": "completed",
        }
    else:
        output = {
            "type": "message",
            "id": "msg_%d" % number,
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": answer(outputs), "annotations": []}],
        }
    return {
        "id": "resp_%d" % number,
        "object": "response",
        "created_at": time.time(),
        "model": MODEL,
        "status": "completed",
        "output": [output],
        "tools": request.get("tools", []),
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": {
            "input_tokens": len(items) * 10,
            "output_tokens": 10,
            "total_tokens": len(items) * 10 + 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def chat_completions(request):
    """OpenAI's older API: tool calls hang on the assistant's message, their outputs are messages of the role `tool`."""
    messages = request["messages"]
    outputs = [text_of(message["content"]) for message in messages if message["role"] == "tool"]
    number = next(numbers)
    message, reason = {"role": "assistant", "content": answer(outputs)}, "stop"
    if request.get("tools") and not outputs:
        function = request["tools"][0]["function"]
        call = {"name": function["name"], "arguments": tool_arguments(function["parameters"], messages)}
        tool_calls = [{"id": "call_%d" % number, "type": "function", "function": call}]
        message, reason = {"role": "assistant", "content": None, "tool_calls": tool_calls}, "tool_calls"
    return {
        "id": "chatcmpl-%d" % number,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": len(messages) * 10, "completion_tokens": 10, "total_tokens": len(messages) * 10 + 10},
    }


def answer(outputs):
    return "The tool says: " + outputs[-1] if outputs else "There is no tool to ask."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its head
    routes = {"/v1/responses": responses, "/v1/chat/completions": chat_completions}

    def do_GET(self):
        if self.path == "/v1/models":
            self.answer(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "stub"}]})
        else:
            self.answer(404, {"error": {"message": "no such path"}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        route = self.routes.get(self.path)
        if route is None:
            self.answer(404, {"error": {"message": "no such path"}})
            return
        try:
            status, content = 200, route(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            status, content = 400, {"error": {"message": "%s: %s" % (type(error).__name__, error)}}
        self.answer(status, content)

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    # Blocked here, so that no thread is interrupted; taken by sigwait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.sigwait(STOP_SIGNALS)


if __name__ == "__main__":
    main()
