"""The primitives. Each works in ``with`` and in ``async with``; each acquisition gives a :class:`~holdfast.Lease`."""
from __future__ import annotations

import asyncio
import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ._calls import NUL, check, is_main_thread, nanoseconds, run, start, text, thread_error, wait_for
from ._native import ffi, lib
from .errors import Busy, NotGranted, NotHeld
from .lease import Lease, LostFlag

if TYPE_CHECKING:
    from .client import Client

BUSY, UNAVAILABLE = 1, 7
CONTENDED = 16  # so many acquisitions do not try first, after one that found the lock busy
_UNSET: Any = object()


class _Entered:
    """By ``with``: a lease, and the thread or task."""

    __slots__ = ("owner", "lease")

    def __init__(self, owner: object, lease: Lease) -> None:
        self.owner, self.lease = owner, lease


class _Held:
    """What ``with`` has acquired, by thread or task. No mutex would do: a signal handler, or a generator that is collected,
    may come in between in the same thread. Each change is one call of the list's."""

    def __init__(self) -> None:
        self._all: list[_Entered] = []

    def push(self, owner: object, lease: Lease) -> None:
        self._all.append(_Entered(owner, lease))

    def pop(self, owner: object) -> Lease:
        """The last of this owner. If it has none, that of another one: generators and fixtures are often ended by another
        thread or task than they were begun by. Then rather of one that has ended than of one that may end it itself."""
        while True:
            last_first = self._all[::-1]
            if not last_first:
                raise NotHeld("not held (with has not been entered, or left before)")
            chosen = next((each for each in last_first if each.owner is owner), None)
            if chosen is None:
                chosen = min(last_first, key=lambda each: _goes_on(each.owner))
            try:
                self._all.remove(chosen)
            except ValueError:
                continue  # somebody else's by now
            return chosen.lease


def _goes_on(owner: object) -> bool:
    """Whether the thread or task may still leave what it has entered."""
    return owner.is_alive() if isinstance(owner, threading.Thread) else not (asyncio.isfuture(owner) and owner.done())


class Acquirable:
    """What all locks have: :meth:`acquire`, :meth:`try_acquire`, :meth:`acquire_async`, ``with``, ``async with``.

    Thread-safe; one object may be used by any number of threads and tasks at once. Not re-entrant, except
    :class:`RLock`.
    """

    def __init__(self, client: Client, pointer: Any, name: str, wait: Optional[float]) -> None:
        self._client = client
        self._ptr = ffi.gc(pointer, lib.hf_lock_free)
        self._options: Any = NUL
        #: The name of the lock.
        self.name = name
        #: How long acquiring waits unless it is given another time; None: no limit.
        self.wait = wait
        self._contended = 0  # acquisitions of the main thread that will not try first
        self._held = _Held()

    def _how(self, asynchronous: bool) -> Any:
        """The hf_acquire_options of an acquisition."""
        return self._options

    def acquire(self, wait: Optional[float] = _UNSET) -> Lease:
        """Waits for the lock, at most ``wait`` seconds; None: no limit; 0: tries once.

        :class:`Busy` (if ``wait`` is 0), :class:`TimedOut`, :class:`Unavailable`, ... ``wait`` bounds contention and
        outages alike. Ctrl-C ends the wait, other threads run meanwhile.
        """
        limit = nanoseconds(self.wait if wait is _UNSET else wait)
        return Lease(lambda out, error: self._acquire(limit, out, error), self._client, self)

    def _acquire(self, limit: int, out: Any, error: Any) -> Any:
        how = self._how(False)
        if limit == 0 or not is_main_thread():
            return lib.hf_acquire(self._ptr, limit, how, NUL, out, error)
        # Only a wait in Python is ended by Ctrl-C. A free lock needs no wait, so a try comes first; but not each time
        # if others have the lock: that would be one more round trip.
        status = BUSY if self._contended else lib.hf_acquire(self._ptr, 0, how, NUL, out, error)
        if status in (BUSY, UNAVAILABLE):
            self._contended = self._contended - 1 if self._contended else CONTENDED
            call = wait_for(lambda queue, tag, call, error: lib.hf_acquire_start(
                self._ptr, limit, how, queue, tag, call, error))
            status = lib.hf_call_lease(call[0], out, error)
        return status

    def try_acquire(self) -> Optional[Lease]:
        """The lease, or None if the lock is not free."""
        try:
            return self.acquire(0)
        except Busy:
            return None

    async def acquire_async(self, wait: Optional[float] = _UNSET) -> Lease:
        """:meth:`acquire` in a coroutine. No thread waits. Cancelling gives back what was granted."""
        limit = nanoseconds(self.wait if wait is _UNSET else wait)
        how = self._how(True)
        call = await run(lambda queue, tag, out, error: lib.hf_acquire_start(
            self._ptr, limit, how, queue, tag, out, error))
        return Lease(lambda out, error: lib.hf_call_lease(call[0], out, error), self._client, self)

    def __enter__(self) -> Lease:
        lease = self.acquire()
        self._held.push(threading.current_thread(), lease)
        return lease

    def __exit__(self, kind: Optional[type], error: object, trace: object) -> None:
        self._held.pop(threading.current_thread()).__exit__(kind, error, trace)

    async def __aenter__(self) -> Lease:
        lease = await self.acquire_async()
        self._held.push(asyncio.current_task(), lease)
        return lease

    async def __aexit__(self, kind: Optional[type], error: object, trace: object) -> None:
        await self._held.pop(asyncio.current_task()).__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<holdfast.{type(self).__name__} {self.name!r}>"


class Lock(Acquirable):
    """At most one holder, across threads, processes and hosts."""

    def locked(self) -> bool:
        """Whether anyone holds it at the moment."""
        return any(not claim.waiting for claim in self._client.inspect(self.name))


_owners = itertools.count(1)


class RLock(Lock):
    """A lock that its holder may acquire again: the same thread, or the same task of asyncio. All leases have the fence
    of the first; the lock is released with the last of them."""

    _of_task: "weakref.WeakKeyDictionary[asyncio.Task[Any], int]" = weakref.WeakKeyDictionary()

    def _how(self, asynchronous: bool) -> Any:
        task = asyncio.current_task() if asynchronous else None
        if task is None:
            return NUL
        owner = self._of_task.get(task)
        if owner is None:
            owner = self._of_task[task] = next(_owners)
        return acquire_options(owner=owner)


def acquire_options(**members: int) -> Any:
    return ffi.new("hf_acquire_options *", {"size": ffi.sizeof("hf_acquire_options"), **members})


class WriteLock(Acquirable):
    """The writing side of an :class:`RWLock`."""

    async def downgrade_async(self, lease: Lease) -> None:
        await run(lambda queue, tag, out, error: lib.hf_downgrade_start(
            self._ptr, lease._ptr, queue, tag, out, error))

    def downgrade(self, lease: Lease) -> None:
        """From writer to reader without releasing: no writer gets in between. The fence changes."""
        wait_for(lambda queue, tag, out, error: lib.hf_downgrade_start(self._ptr, lease._ptr, queue, tag, out, error))


class ReadLock(Acquirable):
    """The reading side of an :class:`RWLock`."""

    def __init__(self, client: Client, pointer: Any, name: str, wait: Optional[float]) -> None:
        super().__init__(client, pointer, name, wait)
        self._options = acquire_options(shared=1)

    async def upgrade_async(self, lease: Lease) -> None:
        await run(lambda queue, tag, out, error: lib.hf_upgrade_start(self._ptr, lease._ptr, queue, tag, out, error))

    def upgrade(self, lease: Lease) -> None:
        """From reader to writer without releasing. Only for the sole reader with no other upgrade pending; otherwise
        :class:`WouldDeadlock` at once, and the lease stays as it was. The fence changes."""
        wait_for(lambda queue, tag, out, error: lib.hf_upgrade_start(self._ptr, lease._ptr, queue, tag, out, error))


class RWLock:
    """Many readers or one writer: ``with lock.read: ...``, ``with lock.write: ...``. Nobody starves."""

    def __init__(self, read: ReadLock, write: WriteLock) -> None:
        #: For reading.
        self.read = read
        #: For writing.
        self.write = write
        self.name = write.name


class Semaphore(Acquirable):
    """At most ``max`` permits at a time. A permit is a lease: it ends with its holder, and is given back once."""

    def permits(self, count: int) -> Permits:
        """Several permits at once, all or nothing: ``with semaphore.permits(2): ...``."""
        return Permits(self, count)

    def available(self) -> int:
        """Permits that nobody held at some moment during the call."""
        out = ffi.new("uint32_t *")
        error = thread_error()
        check(lib.hf_available(self._ptr, out, error), error)
        return out[0]

    def resize(self, max: int) -> None:
        """Sets ``max`` for this object; at the engine it takes effect when nobody holds or waits."""
        error = thread_error()
        check(lib.hf_resize(self._ptr, max, error), error)


class Permits(Acquirable):
    """Several permits of a :class:`Semaphore`, as one lease."""

    def __init__(self, of: Semaphore, count: int) -> None:
        self._client, self._ptr, self.name, self.wait = of._client, of._ptr, of.name, of.wait
        self._held, self._contended = _Held(), 0
        self.count = count
        self._options = acquire_options(permits=count)


class Leader(NamedTuple):
    """Who leads."""

    id: str
    fence: int
    claim: str


class Election(Acquirable):
    """One of many candidates leads: acquire to campaign, release to resign."""

    def leader(self) -> Optional[Leader]:
        """Who leads at the moment."""
        return self._leader(wait_for(self._ask))

    async def leader_async(self) -> Optional[Leader]:
        return self._leader(await run(self._ask))

    def _ask(self, queue: Any, tag: int, out: Any, error: Any) -> int:
        return lib.hf_leader_start(self._ptr, queue, tag, out, error)

    @staticmethod
    def _leader(call: Any) -> Optional[Leader]:
        leader = ffi.new("hf_leader *", {"size": ffi.sizeof("hf_leader")})
        error = thread_error()
        check(lib.hf_call_leader(call[0], leader, error), error)
        return Leader(text(leader.id), leader.fence, text(leader.claim)) if leader.present else None


class MultiLock(Acquirable):
    """Several locks as one: all or nothing, one deadline, no deadlock whatever the order. ``lease.fences`` has the fence
    of each."""


def multi(*locks: Acquirable, wait: Optional[float] = None) -> MultiLock:
    """Several locks as one, of any mix of clients: locks, ``rw.read``, ``rw.write``, semaphores, ``semaphore.permits(2)``."""
    parts = ffi.new("hf_part[]", len(locks))
    for part, lock in zip(parts, locks):
        part.size = ffi.sizeof("hf_part")
        part.lock = lock._ptr
        part.shared = isinstance(lock, ReadLock)
        part.permits = lock.count if isinstance(lock, Permits) else 1
    out = ffi.new("hf_lock **")
    error = thread_error()
    check(lib.hf_multi_new(parts, len(locks), out, error), error)
    made = MultiLock(locks[0]._client, out[0], ", ".join(lock.name for lock in locks), wait)
    made._parts = locks  # type: ignore[attr-defined]  # their clients stay open
    return made


class Latch:
    """A count that goes down to zero across processes, for which many wait."""

    def __init__(self, client: Client, pointer: Any, name: str) -> None:
        self._client = client
        self._ptr = ffi.gc(pointer, lib.hf_latch_free)
        self.name = name

    def set(self, count: int) -> None:
        """Sets the count, 1 to 1,000,000. :class:`Conflict`: it is set and not at zero."""
        wait_for(lambda queue, tag, out, error: lib.hf_latch_set_start(self._ptr, count, queue, tag, out, error))

    async def set_async(self, count: int) -> None:
        await run(lambda queue, tag, out, error: lib.hf_latch_set_start(self._ptr, count, queue, tag, out, error))

    def count_down(self, by: int = 1, id: Optional[str] = None) -> int:
        """The new count, never below zero. Count-downs with the same ``id`` count once."""
        return self._number(wait_for(self._count_down(by, id)))

    async def count_down_async(self, by: int = 1, id: Optional[str] = None) -> int:
        return self._number(await run(self._count_down(by, id)))

    def _count_down(self, by: int, id: Optional[str]) -> Any:
        raw = NUL if id is None else id.encode()
        return lambda queue, tag, out, error: lib.hf_latch_count_down_start(
            self._ptr, by, raw, 0 if id is None else len(raw), queue, tag, out, error)

    def count(self) -> Optional[int]:
        """None: it is not set."""
        return self._count_of(wait_for(self._ask_count))

    async def count_async(self) -> Optional[int]:
        return self._count_of(await run(self._ask_count))

    def _ask_count(self, queue: Any, tag: int, out: Any, error: Any) -> int:
        return lib.hf_latch_count_start(self._ptr, queue, tag, out, error)

    def wait(self, wait: Optional[float] = None) -> None:
        """Waits until the count is zero, also for a latch that is not set yet. :class:`TimedOut` after ``wait``."""
        wait_for(self._wait(wait))

    async def wait_async(self, wait: Optional[float] = None) -> None:
        await run(self._wait(wait))

    def _wait(self, wait: Optional[float]) -> Any:
        return lambda queue, tag, out, error: lib.hf_latch_wait_start(
            self._ptr, nanoseconds(wait), queue, tag, out, error)

    @staticmethod
    def _number(call: Any) -> int:
        out = ffi.new("uint32_t *")
        error = thread_error()
        check(lib.hf_call_number(call[0], out, error), error)
        return out[0]

    def _count_of(self, call: Any) -> Optional[int]:
        try:
            return self._number(call)
        except NotHeld:
            return None
