"""A tree of Python servers: server.py COUNT FAN_OUT THREADS [INDEX]. Each says a line once it is there."""

import asyncio  # noqa: F401
import ctypes
import http.server  # noqa: F401
import json  # noqa: F401
import subprocess
import sys
import threading
import time

for module in ("yaml", "pydantic"):
    try:
        __import__(module)
    except ImportError:
        pass

PR_SET_PDEATHSIG, SIGKILL = 1, 9


def main():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    count, fan_out, threads = (int(word) for word in sys.argv[1:4])
    index = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    for child in range(fan_out * index + 1, min(fan_out * index + fan_out + 1, count)):
        subprocess.Popen([sys.executable, __file__, str(count), str(fan_out), str(threads), str(child)])
    for _ in range(threads - 1):
        threading.Thread(target=lambda: time.sleep(1e6), daemon=True).start()
    print("there", flush=True)
    time.sleep(1e6)


main()
