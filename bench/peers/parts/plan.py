"""Which peers run in which row, how long it takes, and which results are written."""
from .workloads import OURS, WORKLOADS, bars

ROUNDS = 5          # at least, for figures that are kept
SECONDS = 0.75
LIMIT_MINUTES = 20  # for the whole table, on two cores
OVERHEAD = 0.3      # seconds per round: /proc is read, the last waiters get their turn
SERVER_START = {"redis": 1, "zookeeper": 3, "etcd": 2, "postgresql": 4, "mariadb": 6}


def rows_of(names):
    """The workloads by these names, or all; ValueError with those that do not exist."""
    unknown = set(names) - {one["name"] for one in WORKLOADS}
    if unknown:
        raise ValueError(f"no such workload: {', '.join(sorted(unknown))}")
    return [one for one in WORKLOADS if not names or one["name"] in names]


def row_seconds(workload, peers, rounds, seconds):
    """Approximately how long a row takes."""
    total = 1 + SERVER_START.get(workload["engine"], 0)
    for peer in peers:
        total += peer.start_seconds * workload["processes"] + (peer.first_warm_ms - peer.warm_ms) / 1e3
        total += rounds * (peer.warm_ms / 1e3 + seconds + OVERHEAD)
    return total


def duration(workloads, peers, rounds, seconds):
    return sum(row_seconds(one, [peer for peer in peers if peer.fits(one)], rounds, seconds) for one in workloads)


def why_not_written(rounds, seconds, even_if_disturbed):
    """Why the run's results are not written, whatever it measures; None if they are."""
    if even_if_disturbed:
        return "--even-if-disturbed"
    if rounds < ROUNDS or seconds < SECONDS:
        return f"fewer than {ROUNDS} rounds of {SECONDS:g} s"
    return None


def add_ratios(by_peer):
    ours = by_peer["holdfast"]
    for name, peer in by_peer.items():
        if name == "holdfast" or not peer["grants_per_second"]:
            continue
        peer["holdfast_rate_ratio"] = ours["grants_per_second"] / peer["grants_per_second"]
        peer["holdfast_p99_ratio"] = peer["acquire_us"]["p99"] / ours["acquire_us"]["p99"]


def missed(rows):
    """[row, peer, ratio, bar] where holdfast is slower than it should be."""
    return [(one["name"], name, one["peers"][name]["holdfast_rate_ratio"], bar)
            for one in rows for name, bar in bars(one).items()
            if name not in OURS and one["peers"][name].get("holdfast_rate_ratio", bar) < bar]
