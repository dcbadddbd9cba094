"""A peer in Python: a library's lock as its documentation shows it, with its defaults and a lease of 30 s.

    peer.py KIND HOST:PORT THREADS own|same MODE HOLD_MS NAME COUNT

KIND: redis-py, python-redis-lock, pottery, kazoo or holdfast, which gets its URL as the address.
MODE coroutines: THREADS is the number of coroutines, on one loop. Speaks as bench/peers/java/Peer.java does.
"""
import asyncio
import collections
import json
import mmap
import random
import struct
import sys
import threading
import time

FINE = 7  # a part in 128
LEASE = 30


def cell_of(span):
    coarse = max(0, span.bit_length() - FINE - 1)
    return (coarse << FINE) + (span >> coarse)


def top_of(cell):
    coarse = max(cell >> FINE, 1) - 1
    return (((cell - (coarse << FINE) + 1) << coarse) - 1) / 1e3


def redis_at(address):
    import redis
    host, port = address.split(":")
    client = redis.Redis(host=host, port=int(port))
    client.ping()
    return client


# Each makes a function from a name and a mode to (take, release), for one thread.

def redis_py(address):
    client = redis_at(address)

    def make(name, _):
        lock = client.lock(name, timeout=LEASE)
        return lock.acquire, lock.release
    return make


def python_redis_lock(address):
    import redis_lock
    client = redis_at(address)

    def make(name, _):
        lock = redis_lock.Lock(client, name, expire=LEASE)
        return lock.acquire, lock.release
    return make


def pottery(address):
    from pottery import Redlock
    client = redis_at(address)

    def make(name, _):
        lock = Redlock(key=name, masters={client}, auto_release_time=LEASE)
        return lock.acquire, lock.release
    return make


def kazoo(address):
    from kazoo.client import KazooClient
    client = KazooClient(hosts=address)
    client.start()

    def make(name, mode):
        path = "/" + name
        kinds = {"read": client.ReadLock, "write": client.WriteLock}
        if mode.startswith("semaphore:"):
            lock = client.Semaphore(path, max_leases=int(mode.split(":")[1]))
        else:
            lock = kinds.get(mode, client.Lock)(path)
        return lock.acquire, lock.release
    return make


def holdfast(url):
    from holdfast import connect
    client = connect(url)

    def make(name, _):
        lock = client.lock(name, ttl=LEASE)
        return lock.__enter__, lambda: lock.__exit__(None, None, None)
    return make


KINDS = {"redis-py": redis_py, "python-redis-lock": python_redis_lock, "pottery": pottery, "kazoo": kazoo,
         "holdfast": holdfast}


# The same for coroutines. Taking may give up after a while: False.

def redis_py_coroutines(address):
    import redis.asyncio
    host, port = address.split(":")
    client = redis.asyncio.Redis(host=host, port=int(port), max_connections=2000)  # each that waits needs one

    def make(name):
        # It polls, and would continue after the round.
        lock = client.lock(name, timeout=LEASE, blocking_timeout=0.5)
        return lock.acquire, lock.release
    return make


def holdfast_coroutines(url):
    from holdfast import connect
    client = connect(url)

    def make(name):
        lock = client.lock(name, ttl=LEASE)
        return lock.__aenter__, lambda: lock.__aexit__(None, None, None)
    return make


COROUTINES = {"redis-py": redis_py_coroutines, "holdfast": holdfast_coroutines}


class Worker(threading.Thread):
    start_time = end_time = hold = reads = 0
    count = None

    def __init__(self, write, read):
        super().__init__()
        self.write, self.read = write, read
        self.grants = self.longest = self.pairs = self.counted = 0
        self.cells = collections.Counter()
        self.problem = None

    def run(self):
        try:
            self.work()
        except Exception as problem:  # said by main
            self.problem = problem

    def work(self):
        asked = time.monotonic_ns()
        while asked < self.end_time:
            reading = self.reads and random.random() * 100 < self.reads
            take, give_back = self.read if reading else self.write
            take()
            granted = time.monotonic_ns()
            counting = self.count and not reading
            before = struct.unpack("<q", self.count[:8])[0] if counting else 0
            if self.hold:
                time.sleep(self.hold)
            if counting:
                self.count[:8] = struct.pack("<q", before + 1)
                self.counted += 1
            give_back()
            done = time.monotonic_ns()
            self.pairs += 1
            self.grants += self.start_time <= done <= self.end_time
            if asked >= self.start_time:
                self.cells[cell_of(granted - asked)] += 1
                self.longest = max(self.longest, granted - asked)
            asked = done


def one_round(locks):
    workers = [Worker(write, read) for write, read in locks]
    for each in workers:
        each.start()
    cells = collections.Counter()
    for each in workers:
        each.join()
        if each.problem:
            raise each.problem
        cells += each.cells
    print(json.dumps({"grants": [each.grants for each in workers],
                      "pairs": sum(each.pairs for each in workers),
                      "counted": sum(each.counted for each in workers),
                      "max_us": max(each.longest for each in workers) / 1e3,
                      "histogram": [[top_of(cell), count] for cell, count in sorted(cells.items())]}), flush=True)


async def round_of_coroutines(locks):
    grants, cells = [0] * len(locks), collections.Counter()
    pairs = longest = 0

    async def work(number, take, give_back):
        nonlocal pairs, longest
        asked = time.monotonic_ns()
        while asked < Worker.end_time:
            if await take() is False:
                if time.monotonic_ns() >= Worker.end_time:
                    return
                continue
            granted = time.monotonic_ns()
            await give_back()
            done = time.monotonic_ns()
            pairs += 1
            grants[number] += Worker.start_time <= done <= Worker.end_time
            if asked >= Worker.start_time:
                cells[cell_of(granted - asked)] += 1
                longest = max(longest, granted - asked)
            asked = done

    await asyncio.gather(*(work(number, *lock) for number, lock in enumerate(locks)))
    print(json.dumps({"grants": grants, "pairs": pairs, "counted": 0, "max_us": longest / 1e3,
                      "histogram": [[top_of(cell), count] for cell, count in sorted(cells.items())]}), flush=True)


def play_rounds(play, locks):
    """Calls `play` for each line, which says how long the warm-up and the round are."""
    print("ready", flush=True)
    for line in sys.stdin:
        warm, length = (int(word) * 1_000_000 for word in line.split())
        Worker.start_time = time.monotonic_ns() + warm
        Worker.end_time = Worker.start_time + length
        play(locks)


def main():
    kind, address, threads, own, mode, hold, name, count = sys.argv[1:]
    if mode == "coroutines":
        make = COROUTINES[kind](address)
        with asyncio.Runner() as runner:
            play_rounds(lambda locks: runner.run(round_of_coroutines(locks)), [make(name) for _ in range(int(threads))])
        return
    make = KINDS[kind](address)
    Worker.hold = int(hold) / 1e3
    Worker.reads = int(mode[3:]) if mode.startswith("rw:") else 0
    if count != "-":
        with open(count, "r+b") as file:
            Worker.count = mmap.mmap(file.fileno(), 8)
    locks = []
    for number in range(int(threads)):
        mine = name + (f"-{number}" if own == "own" else "")
        write = make(mine, "write" if Worker.reads else mode)
        locks.append((write, make(mine, "read") if Worker.reads else write))
    play_rounds(one_round, locks)


main()
