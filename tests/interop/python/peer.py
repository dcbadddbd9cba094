"""peer.py KIND ADDRESS NAME ROUNDS FILE LOG: the other side of scripts/interop, by libraries of Python.

In each round the lock is taken, the number in FILE is read and written one greater, and the lock is given back. The
other side does the same: if both are ever inside, a number is lost. LOG gets a line per round: when it began to wait,
when it was granted and when it gave back, in ns since 1970.
"""
import contextlib
import sys
import time


def redis_py(address, name):
    import redis

    client = redis.Redis(port=int(address.split(":")[1]))
    return lambda: client.lock(name, timeout=60, blocking_timeout=120)


def python_redis_lock(address, name):
    import redis
    import redis_lock

    client = redis.StrictRedis(port=int(address.split(":")[1]))
    return lambda: redis_lock.Lock(client, name, expire=60)


def kazoo(address, make):
    from kazoo.client import KazooClient

    client = KazooClient(hosts=address)
    client.start()
    return lambda: make(client)


@contextlib.contextmanager
def leading(client, name):
    """Election.run() calls a function under its lock; this is the lock."""
    with client.Election(name, "python").lock:
        yield


def advisory(address, key):
    """key: "4711" or "47, 11"."""
    import psycopg

    host, port = address.split(":")
    link = psycopg.connect(host=host, port=port, user="tester", dbname="postgres", autocommit=True)

    @contextlib.contextmanager
    def held():
        link.execute(f"SELECT pg_advisory_lock({key})")
        yield
        link.execute(f"SELECT pg_advisory_unlock({key})")
    return held


KINDS = {
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
    "kazoo-lock": lambda address, name: kazoo(address, lambda it: it.Lock(name)),
    "kazoo-lock-patterns": lambda address, name: kazoo(
        address, lambda it: it.Lock(name, extra_lock_patterns=["lock-", "__WRIT__", "latch-"])),
    "kazoo-write": lambda address, name: kazoo(address, lambda it: it.WriteLock(name)),
    "kazoo-election": lambda address, name: kazoo(address, lambda it: leading(it, name)),
    "advisory": advisory,
}


def main():
    kind, address, name, rounds, file, log = sys.argv[1:]
    lock = KINDS[kind](address, name)
    print("ready", flush=True)
    with open(log, "w", encoding="utf-8") as lines:
        for turn in range(int(rounds)):
            began = time.time_ns()
            with lock():
                granted = time.time_ns()
                with open(file, encoding="utf-8") as number:
                    before = int(number.read())
                time.sleep(0.001)
                with open(file, "w", encoding="utf-8") as number:
                    number.write(str(before + 1))
                print(began, granted, time.time_ns(), file=lines)
            time.sleep(0.001 + turn % 3 / 1000)


main()
