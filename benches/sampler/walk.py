"""Samples RSS and PSS of a process tree again and again: walk.py walk|psutil ROOT TIMES PAUSE."""

import json
import os
import statistics
import sys
import time


def descendants(root):
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    waiting.extend(int(child) for child in file.read().split())
            except OSError:
                pass
    return found


def memory(pid):
    rss = pss = 0
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Rss:"):
                rss = int(line.split()[1]) * 1024
            elif line.startswith("Pss:"):
                pss = int(line.split()[1]) * 1024
                break
    return rss, pss


def walk(root):
    rss = pss = processes = 0
    for pid in descendants(root):
        try:
            own = memory(pid)
        except OSError:
            continue
        rss, pss, processes = rss + own[0], pss + own[1], processes + 1
    return rss, pss, processes


def with_psutil(root):
    import psutil

    process = psutil.Process(root)
    rss = pss = processes = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            own = one.memory_full_info()
        except psutil.Error:
            continue
        rss, pss, processes = rss + own.rss, pss + own.pss, processes + 1
    return rss, pss, processes


def main():
    mode, root, times, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    sample = walk if mode == "walk" else with_psutil
    sample(root)
    cpu = []
    for _ in range(times):
        if pause:
            time.sleep(pause)
        before = time.process_time_ns()
        rss, pss, processes = sample(root)
        cpu.append(time.process_time_ns() - before)
    print(json.dumps({"cpu_us": statistics.median(cpu) / 1e3, "rss": rss, "pss": pss, "processes": processes}))


main()
