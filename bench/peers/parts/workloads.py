"""What is measured, on which engine. `bar`: the least acceptable rate of holdfast, as a multiple of a peer's.

A peer without a bar of its own has EVERY_PEER, unless it is no lock (NO_LOCKS) or a second face of holdfast.
"""

EVERY_PEER = 1.0
NO_LOCKS = ("bare driver", "nothing")
OURS = ("holdfast", "holdfast-std", "holdfast-coroutines", "holdfast-session", "holdfast-python")


def workload(name, engine, threads=1, processes=1, locks="own", mode="mutex", bar=None):
    return {"name": name, "engine": engine, "threads": threads, "processes": processes,
            "locks": locks, "mode": mode, "bar": bar or {}}


def usual(engine, alone=None, own=None, same=None, processes=None):
    """The four that every engine has; the arguments are their bars."""
    return [workload(f"{engine}-1", engine, bar=alone),
            workload(f"{engine}-64-own", engine, threads=64, bar=own),
            workload(f"{engine}-16-same", engine, threads=16, locks="same", bar=same),
            workload(f"{engine}-16-processes", engine, processes=16, locks="same", bar=processes)]


def of_16(engine, name, mode):
    return workload(f"{engine}-16-{name}", engine, threads=16, locks="same", mode=mode)


WORKLOADS = [
    *usual("redis", {"redsync": 1.2}, {"redsync": 1.5}, {"redisson": 10, "redisson-fenced": 10}),
    of_16("redis", "fair", "fair"), of_16("redis", "rw", "rw:90"), of_16("redis", "semaphore", "semaphore:8"),
    workload("redis-1000-coroutines", "redis", threads=1000, locks="same", mode="coroutines"),
    *usual("zookeeper", same={"curator": 10}),
    of_16("zookeeper", "fair", "fair"), of_16("zookeeper", "rw", "rw:90"),
    of_16("zookeeper", "semaphore", "semaphore:8"),
    *usual("etcd"), of_16("etcd", "fair", "fair"),
    *usual("postgresql"), of_16("postgresql", "rw", "rw:90"),
    *usual("mariadb", {"bare driver": 1 / 1.7}),
    workload("embedded-1", "embedded", bar={"bare driver": 1 / 1.3}),
    workload("embedded-2-processes-fair", "embedded", processes=2, locks="same", mode="fair"),
    workload("command-line", "command", mode="command", bar={"flock": 1 / 2.5}),
    workload("command-line-etcd", "etcd", mode="command"),
]


def bars(one):
    """The bars that apply in this row: peer -> the least ratio."""
    usual_bars = {name: EVERY_PEER for name in one["peers"] if name not in NO_LOCKS and name not in OURS}
    return usual_bars | {name: bar for name, bar in one["bar"].items() if name in one["peers"]}
