"""A peer in Python: redis-py's Lock with its own defaults.

    peer.py HOST:PORT THREADS own|same mutex HOLD_MS WARM_MS RUN_MS PREFIX

Speaks as bench/peers/java/Peer.java does.
"""
import collections
import json
import sys
import threading
import time

import redis

FINE = 7  # a part in 128


def cell_of(span):
    coarse = max(0, span.bit_length() - FINE - 1)
    return (coarse << FINE) + (span >> coarse)


def top_of(cell):
    coarse = max(cell >> FINE, 1) - 1
    return (((cell - (coarse << FINE) + 1) << coarse) - 1) / 1e3


class Worker(threading.Thread):
    start_time = end_time = 0
    go = threading.Event()

    def __init__(self, client, name, hold):
        super().__init__()
        self.lock = client.lock(name, timeout=30)
        self.hold = hold
        self.grants = self.longest = 0
        self.cells = collections.Counter()

    def run(self):
        self.go.wait()
        asked = time.monotonic_ns()
        while asked < self.end_time:
            self.lock.acquire()
            granted = time.monotonic_ns()
            if self.hold:
                time.sleep(self.hold)
            self.lock.release()
            done = time.monotonic_ns()
            self.grants += self.start_time <= done <= self.end_time
            if asked >= self.start_time:
                self.cells[cell_of(granted - asked)] += 1
                self.longest = max(self.longest, granted - asked)
            asked = done


def main():
    address, threads, locks, _, hold, warm, length, prefix = sys.argv[1:]
    host, port = address.split(":")
    client = redis.Redis(host=host, port=int(port))
    client.ping()
    names = [prefix + (f"-{i}" if locks == "own" else "") for i in range(int(threads))]
    workers = [Worker(client, name, int(hold) / 1e3) for name in names]
    for each in workers:
        each.start()
    print("ready", flush=True)
    sys.stdin.readline()
    Worker.start_time = time.monotonic_ns() + int(warm) * 1_000_000
    Worker.end_time = Worker.start_time + int(length) * 1_000_000
    Worker.go.set()
    cells = collections.Counter()
    for each in workers:
        each.join()
        cells += each.cells
    print(json.dumps({"grants": [each.grants for each in workers],
                      "max_us": max(each.longest for each in workers) / 1e3,
                      "histogram": [[top_of(cell), count] for cell, count in sorted(cells.items())]}))


main()
