"""The agent: runs one rollout for each POST to `/run`, between the model (MODEL_URL) and the world (RESOURCES_URL)."""

from __future__ import annotations

import logging
import os

from web import serve

TURNS = 4  # after so many answers of the model a rollout has failed


def make_routes(telemetry):
    model, resources = os.environ["MODEL_URL"], os.environ["RESOURCES_URL"]

    def run(request):
        city = request["city"]
        with telemetry.span("gym.rollout", "rollout") as values:
            telemetry.post(resources + "/seed_session", {})
            messages = [{"type": "message", "role": "user", "text": "What is the weather?", "city": city}]
            for _ in range(TURNS):
                output = telemetry.post(model + "/v1/responses", {"input": messages})["output"][0]
                messages.append(output)
                if output["type"] == "message":
                    break
                result = telemetry.post(resources + "/" + output["name"], output["arguments"])
                messages.append({"type": "function_call_output", "output": result["output"]})
            else:
                raise RuntimeError("no answer after %d turns" % TURNS)
            reward = telemetry.post(resources + "/verify", {"city": city, "text": output["text"]})["reward"]
            values["reward"] = reward
            logging.info("rollout for %s: reward %s", city, reward)
        return {"city": city, "reward": reward, "answer": output["text"], "turns": len(messages)}

    return {"/run": run}


if __name__ == "__main__":
    serve("responses_api_agents", make_routes)
