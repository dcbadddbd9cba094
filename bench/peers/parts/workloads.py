"""What is measured, on which engine. `bar`: what the ratio to a peer should at least be."""


def workload(name, engine, threads=1, processes=1, locks="own", mode="mutex", bar=None):
    return {"name": name, "engine": engine, "threads": threads, "processes": processes,
            "locks": locks, "mode": mode, "bar": bar or {}}


WORKLOADS = [
    workload("redis-1", "redis", bar={"bare driver": 1 / 1.05}),
    workload("redis-64-own", "redis", threads=64, bar={"bare driver": 1.8, "redisson": 2.5}),
    workload("redis-16-same", "redis", threads=16, locks="same", bar={"redisson": 10}),
    workload("redis-16-fair", "redis", threads=16, locks="same", mode="fair", bar={"redisson": 10}),
    workload("redis-16-rw", "redis", threads=16, locks="same", mode="rw:90"),
    workload("redis-16-semaphore", "redis", threads=16, locks="same", mode="semaphore:8"),
    workload("redis-16-processes", "redis", processes=16, locks="same",
             bar={"redisson, p99 wait": 2}),
    workload("zookeeper-1", "zookeeper", bar={"curator": 1.4}),
    workload("zookeeper-16-same", "zookeeper", threads=16, locks="same", bar={"curator": 10}),
    workload("zookeeper-16-rw", "zookeeper", threads=16, locks="same", mode="rw:90"),
    workload("etcd-1", "etcd"),
    workload("etcd-16-same", "etcd", threads=16, locks="same", bar={"etcd": 10}),
    workload("etcd-16-processes", "etcd", processes=16, locks="same", bar={"etcd": 5}),
    workload("postgresql-1", "postgresql"),
    workload("postgresql-16-same", "postgresql", threads=16, locks="same"),
    workload("embedded-1", "embedded", bar={"bare driver": 1 / 1.1}),
    workload("embedded-2-processes-fair", "embedded", processes=2, locks="same", mode="fair",
             bar={"hand-off p50, microseconds": 80}),
    workload("command-line", "command"),
]
