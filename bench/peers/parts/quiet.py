"""Whether the machine was quiet enough to keep the figures.

A run, one peer for one round, is disturbed if other programs used more than OTHERS_LIMIT of the machine's processor
time meanwhile, or if the host took away more than STEAL_LIMIT of it. A row is disturbed if other programs were busy
before it began, or if more than DISTURBED_RUNS of a peer's runs were disturbed: a median stands the rest.
"""
import dataclasses
import os
import time

from . import machine

OTHERS_LIMIT = 0.10
STEAL_LIMIT = 0.10
DISTURBED_RUNS = 0.2
LOOK_SECONDS = 1.0  # how long one look before a row takes
LOOKS = 10          # so often, until it is quiet


@dataclasses.dataclass
class Reading:
    """In ticks since the machine started."""
    total: float
    used: float    # by programs
    stolen: float
    ours: float    # used by this program and what it has started


def parse(text, ours):
    """`text`: /proc/stat. Interrupts are not charged to other programs: on a loopback device they are ours."""
    user, nice, system, idle, iowait, irq, softirq, stolen = (int(word) for word in text.split("\n", 1)[0].split()[1:9])
    return Reading(user + nice + system + idle + iowait + irq + softirq + stolen, user + nice + system, stolen, ours)


def read():
    ours = machine.processor_time(os.getpid()) / 1e6 * os.sysconf("SC_CLK_TCK")
    with open("/proc/stat", encoding="ascii") as file:
        return parse(file.read(), ours)


def shares(before, after):
    """Of the machine's time between two readings: {"others": used by other programs, "steal": taken away}."""
    total = max(after.total - before.total, 1)
    others = (after.used - before.used) - (after.ours - before.ours)
    return {"others": max(0.0, others / total), "steal": max(0.0, (after.stolen - before.stolen) / total)}


def trouble_of_run(share):
    """Why the run was disturbed; None if it was not."""
    if share["others"] > OTHERS_LIMIT:
        return f"other programs used {share['others']:.0%} of the machine"
    if share["steal"] > STEAL_LIMIT:
        return f"the host took away {share['steal']:.0%} of the machine"
    return None


def trouble_of_row(runs):
    """`runs`: peer -> shares of its runs. Why the row is disturbed; None if it is not."""
    for peer, all_shares in runs.items():
        found = [trouble for trouble in map(trouble_of_run, all_shares) if trouble]
        if len(found) > DISTURBED_RUNS * len(all_shares):
            return f"{len(found)} of {len(all_shares)} runs of {peer} were disturbed: {found[0]}"
    return None


def look():
    before = read()
    time.sleep(LOOK_SECONDS)
    return shares(before, read())


def wait_until_quiet(looks=LOOKS, looking=look):
    """None if it is quiet; else what the last look saw. For use while nothing of ours runs."""
    trouble = None
    for _ in range(looks):
        trouble = trouble_of_run(looking())
        if trouble is None:
            return None
    return trouble
