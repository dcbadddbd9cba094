"""A Python process of python/torture/run; worker.cpp is the same in C++. With "async" eight tasks of one loop work at once,
with "threads" four threads."""
import asyncio
import contextlib
import fcntl
import os
import random
import signal
import struct
import sys
import threading
import time

import holdfast

kind, url, folder, count, ttl, worker = sys.argv[1:]
RECORD = struct.Struct("<QQQ")
totals = {"written": 0, "stale": 0, "wrong": 0}
stopped = threading.Event()
guard = threading.Lock()


class Log:
    """What a lock protects: records that are numbered by whoever holds the lock."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def last(self):
        size = os.fstat(self.fd).st_size
        return RECORD.unpack(os.pread(self.fd, RECORD.size, size - RECORD.size)) if size else (0, 0, 0)

    def append(self, before, fence):
        """Whether nobody wrote since `before`, and no greater fence was seen. One write: a kill leaves no half."""
        fd = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)  # threads: a lock of its own
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            number, greatest, _ = self.last()
            good = number == before[0] and greatest < fence
            if good:
                os.lseek(fd, 0, os.SEEK_END)
                os.write(fd, RECORD.pack(number + 1, fence, int(worker)))
            return good
        finally:
            os.close(fd)


client = holdfast.connect(url)
locks = [client.lock(f"torture/{each}", ttl=int(ttl) / 1000, wait=1.0, fair=each % 2 == 1) for each in range(int(count))]
logs = [Log(f"{folder}/{each}") for each in range(int(count))]


def judge(good, lease):
    with guard:
        totals["written" if good else "wrong" if lease.valid else "stale"] += 1


def work():
    while not stopped.is_set():
        which = random.randrange(len(locks))
        with contextlib.suppress(holdfast.Error), locks[which] as lease:
            before = logs[which].last()
            time.sleep(random.random() * 0.0003)
            judge(logs[which].append(before, lease.fence), lease)


async def work_async():
    while not stopped.is_set():
        which = random.randrange(len(locks))
        with contextlib.suppress(holdfast.Error):
            async with locks[which] as lease:
                before = logs[which].last()
                await asyncio.sleep(random.random() * 0.0003)
                judge(logs[which].append(before, lease.fence), lease)


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print("ready", flush=True)
    await asyncio.gather(*(work_async() for _ in range(8)))


if kind == "async":
    asyncio.run(main())
else:
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    print("ready", flush=True)
    others = [threading.Thread(target=work) for _ in range(3 if kind == "threads" else 0)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
print(totals["written"], totals["stale"], totals["wrong"], flush=True)
