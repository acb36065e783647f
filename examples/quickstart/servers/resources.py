"""The resources server: the world that a rollout acts on (a weather report) and the judge of its outcome."""

from __future__ import annotations

import logging

from web import serve

WEATHER = {"Bergen": "raining", "Cairo": "hot", "Nuuk": "snowing", "Lima": "foggy"}


def make_routes(telemetry):
    def seed_session(request):
        return {}

    def get_weather(request):
        logging.info("asked for the weather in %s", request["city"])
        return {"output": "%s in %s" % (WEATHER[request["city"]], request["city"])}

    def verify(request):
        with telemetry.span("gym.verify", "verify") as values:
            reward = 1.0 if WEATHER[request["city"]] in request["text"] else 0.0
            values["reward"] = reward
        return {"reward": reward}

    return {"/seed_session": seed_session, "/get_weather": get_weather, "/verify": verify}


if __name__ == "__main__":
    serve("resources_servers", make_routes)
