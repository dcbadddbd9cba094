"""A lease: a lock that you hold."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import select
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator, Optional

from ._calls import NUL, check, new_call, run, seconds, start, text, thread_error, wait_for
from ._native import ffi, lib
from .errors import Error, Lost, NotHeld, Unavailable, Unsupported

if TYPE_CHECKING:
    from .client import Client


class LostFlag:
    """Whether a lease is lost: a flag, an awaitable, a callback, a descriptor.

    ``if lease.lost: ...``, ``await lease.lost``, ``lease.lost.wait(5)``, ``lease.lost.add_callback(stop)``,
    ``select([lease.lost], [], [])``.
    """

    __slots__ = ("_lease",)

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def __bool__(self) -> bool:
        return not self._lease.released and not self._lease.valid

    def __repr__(self) -> str:
        return f"<{'lost' if self else 'not lost'}>"

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for the loss; False after ``timeout`` seconds, or when the lease is released meanwhile."""
        try:
            return wait_for(self._start, timeout) is not None
        except NotHeld:
            return False

    def __await__(self) -> Generator[Any, None, bool]:
        """Waits for the loss; False when the lease is released meanwhile."""
        return self._wait_async().__await__()

    async def _wait_async(self) -> bool:
        try:
            await run(self._start)
        except NotHeld:
            return False
        return True

    def _start(self, queue: Any, tag: int, out: Any, error: Any) -> int:
        return lib.hf_lost_start(self._lease._ptr, queue, tag, out, error)

    def add_callback(self, callback: Callable[[Lease], object]) -> None:
        """Calls ``callback(lease)`` once when the lease is lost, on a thread of the client's."""
        self._lease._client._watcher().add(self._lease, callback)

    def fileno(self) -> int:
        """A descriptor for poll() that becomes readable when the lease is lost. It is the lease's: do not close it."""
        fd = ffi.new("int *")
        error = thread_error()
        check(lib.hf_lease_lost_fd(self._lease._ptr, fd, error), error)
        return fd[0]


class Guard:
    """Cancels the body when the lease is lost, and raises :class:`Lost` then."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._fired = False

    async def __aenter__(self) -> Lease:
        self._lease.check()
        self._task = asyncio.current_task()
        # Earlier cancellations by others; Python 3.11 counts them.
        self._cancelling = self._task.cancelling() if hasattr(self._task, "cancelling") else 0
        self._watch = asyncio.ensure_future(self._lease.lost._wait_async())
        self._watch.add_done_callback(self._ended)
        return self._lease

    def _ended(self, watch: asyncio.Future[bool]) -> None:
        if not watch.cancelled() and watch.exception() is None and watch.result() and self._task is not None:
            self._fired = True
            self._task.cancel()

    async def __aexit__(self, kind: Optional[type], error: Optional[BaseException], trace: object) -> None:
        self._watch.cancel()
        task, self._task = self._task, None
        if not self._fired:
            return
        uncancel = getattr(task, "uncancel", None)
        ours = uncancel is None or uncancel() <= self._cancelling
        if kind is asyncio.CancelledError and ours:
            raise Lost(f"lost ({self._lease.name})") from error
        if kind is None:
            # The body ended before it could be cancelled: nothing is left to cancel.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                pass
            raise Lost(f"lost ({self._lease.name})")


class Lease:
    """A lock that is held. Released by :meth:`release`, by ``with`` and ``async with``, or when it goes away.

    It may be passed to other threads and tasks, and used by several at once.
    """

    __slots__ = ("_cell", "_ptr", "_client", "_owner", "released", "_fence", "_name", "__weakref__")

    def __init__(self, acquire: Callable[[Any, Any], int], client: Client, owner: object) -> None:
        """``acquire`` puts an ``hf_lease`` into an ``hf_lease **``, or fills an ``hf_error``: the status."""
        # It has an owner before it is granted, and is released with an exception, as in wait_for.
        self._cell = ffi.gc(ffi.new("hf_lease **"), lib.free_lease_in)
        try:
            error = thread_error()
            check(acquire(self._cell, error), error)
            self._ptr = self._cell[0]
            self._fence = lib.hf_lease_fence(self._ptr)
        except BaseException:
            ffi.release(self._cell)
            raise
        self._client = client
        # The lock: a client is closed with its last lock.
        self._owner = owner
        #: Whether :meth:`release` was called, or it was detached.
        self.released = False
        self._name = ""

    @property
    def fence(self) -> int:
        """The fencing token: greater than that of every grant of this name that ended before this one was requested.

        Give it to whatever you protect, and let that refuse smaller ones. 0: a degraded lease. It changes with an upgrade
        and a downgrade only.
        """
        current = lib.hf_lease_fence(self._ptr)
        if current:
            self._fence = current
        return self._fence

    @property
    def valid(self) -> bool:
        """Whether the lock is ours now, by the clock. It says nothing about the time after the call."""
        return lib.hf_lease_valid(self._ptr) == 1

    @property
    def valid_for(self) -> float:
        """Seconds of validity that remain if no renewal is answered; infinite where holds do not end by time."""
        return seconds(lib.hf_lease_valid_for(self._ptr))

    @property
    def lost(self) -> LostFlag:
        """Whether it is lost; can also be awaited, waited for, and given a callback."""
        return LostFlag(self)

    def check(self) -> None:
        """Raises :class:`Lost` if it is not valid any more, :class:`NotHeld` if it was released."""
        if self.released:
            raise NotHeld("not held (the lease was released)")
        if not self.valid:
            raise Lost(f"lost ({self.name})")

    def _info(self, index: int = 0) -> Any:
        info = ffi.new("hf_lease_info *")
        info.size = ffi.sizeof("hf_lease_info")
        error = thread_error()
        check(lib.hf_lease_describe(self._ptr, index, info, error), error)
        return info

    @property
    def name(self) -> str:
        """The name of the lock; of a multi-lock, of its first."""
        if not self._name and not self.released:
            self._name = text(self._info().name)
        return self._name

    @property
    def claim(self) -> str:
        """The public id of the claim, as the command line shows it."""
        return text(self._info().claim)

    @property
    def ttl(self) -> float:
        """What the engine granted, in seconds."""
        return seconds(self._info().ttl)

    @property
    def wanted(self) -> bool:
        """Whether somebody else waits for the lock, so that a batch job can step aside."""
        return bool(self._info().wanted)

    @property
    def degraded(self) -> bool:
        """Granted by the local fallback: excludes no other process."""
        return bool(self._info().degraded)

    @property
    def fences(self) -> dict[str, int]:
        """The fences of all locks in it, by name: for a multi-lock."""
        infos = [self._info(index) for index in range(lib.hf_lease_count(self._ptr))]
        return {text(info.name): info.fence for info in infos}

    def release(self) -> None:
        """Releases the lock and waits for the answer, at most a third of the ttl or 5 s.

        :class:`Lost`: it had ended before; :class:`Unavailable`: no answer, repeated in the background;
        :class:`NotHeld`: it was released before. It holds nothing afterwards, whatever the answer.
        """
        error = thread_error()
        status = lib.hf_release(self._ptr, error)
        self.released = True
        if status:
            check(status, error)

    async def release_async(self) -> None:
        """The same in a coroutine."""
        self.released = True
        await run(lambda queue, tag, out, error: lib.hf_release_start(self._ptr, queue, tag, out, error))

    def detach(self) -> str:
        """Gives the lease up to the owner of the token that this returns: :meth:`Client.adopt` continues it, in this process or
        another one, with the same fence, while nobody else gets in. Until then it is not renewed and lives on its ttl alone.

        The token is a secret: anyone who has it can adopt, renew and release. :class:`Lost`: it had ended before;
        :class:`Unavailable`: no answer, so nobody knows whether it was detached; it is released in the background, or ends
        with its ttl. It holds nothing afterwards, whatever the answer, and is not lost. Except :class:`Unsupported`, where
        it goes on as before: the engine cannot do it, or it is a leadership, or of an :class:`RLock` or :class:`MultiLock`.
        """
        token, error = ffi.new("hf_text *"), thread_error()
        with self._giving_up():
            check(lib.hf_detach(self._ptr, token, error), error)
        return text(token)

    async def detach_async(self) -> str:
        """The same in a coroutine."""
        with self._giving_up():
            call = await run(lambda queue, tag, out, error: lib.hf_detach_start(self._ptr, queue, tag, out, error))
        token, error = ffi.new("hf_text *"), thread_error()
        check(lib.hf_call_token(call[0], token, error), error)
        return text(token)

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """What is being detached is released, not lost, unless it cannot be detached."""
        before, self.released = self.released, True
        try:
            yield
        except Unsupported:
            self.released = before
            raise

    def guard(self) -> Guard:
        """``async with lease.guard():`` cancels its body when the lease is lost, and raises :class:`Lost` then."""
        return Guard(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: Optional[type], error: object, trace: object) -> None:
        try:
            self.release()
        except Error as problem:
            _at_end(problem, kind)

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(self, kind: Optional[type], error: object, trace: object) -> None:
        try:
            await self.release_async()
        except Error as problem:
            _at_end(problem, kind)

    def __repr__(self) -> str:
        state = "released" if self.released else "valid" if self.valid else "lost"
        return f"<holdfast.Lease {self.name!r} fence={self.fence} {state}>"


def _at_end(problem: Error, kind: Optional[type]) -> None:
    """At the end of a block: a loss must be known, unless the body failed anyway. A release that got no answer is
    repeated in the background, and one that was made in the body is none to complain about."""
    if kind is None and not isinstance(problem, (NotHeld, Unavailable)):
        raise problem


def _stop(made_by: int, stop_write: int) -> None:
    """Of a :class:`Watcher`. Writes: a forked child has the descriptor too, and keeps it open. There it may be another file's."""
    if os.getpid() == made_by:
        os.write(stop_write, b".")
        os.close(stop_write)


class Watcher:
    """Runs callbacks of lost leases: one thread for a client, from the first callback on."""

    def __init__(self, client: Client) -> None:
        out = ffi.new("hf_queue **")
        error = thread_error()
        check(lib.hf_queue_new(out, error), error)
        self._queue = ffi.gc(out[0], lib.hf_queue_free)
        # Weak: a lease without references is released, whoever asked to be notified of its loss.
        self._watched: dict[int, tuple[Any, weakref.ref[Lease], Callable[[Lease], object]]] = {}
        self._tags = itertools.count(1)
        self._stop_read, stop_write = os.pipe()
        #: Ends the thread, after the callbacks of what was lost until now. May be called twice; is, if the client goes away.
        self.stop = weakref.finalize(client, _stop, os.getpid(), stop_write)
        self.stop.atexit = False
        threading.Thread(target=self._run, name="holdfast-lost", daemon=True).start()

    def add(self, lease: Lease, callback: Callable[[Lease], object]) -> None:
        # No mutex: a signal handler may add one meanwhile, or raise.
        tag, call = next(self._tags), new_call()
        try:
            self._watched[tag] = (call, weakref.ref(lease), callback)
            start(call, lambda queue, tag, out, error: lib.hf_lost_start(lease._ptr, queue, tag, out, error), self._queue, tag)
        except BaseException:
            self._watched.pop(tag, None)
            raise

    def _run(self) -> None:
        ready = select.poll()
        ready.register(lib.hf_queue_fd(self._queue), select.POLLIN)
        ready.register(self._stop_read, select.POLLIN)
        stopped = False
        while not stopped:
            stopped = any(fd == self._stop_read for fd, _ in ready.poll())
            self._answered()
        os.close(self._stop_read)

    def _answered(self) -> None:
        tag, count = ffi.new("uint64_t *"), ffi.new("size_t *")
        while lib.hf_queue_next(self._queue, tag, 1, count, NUL) == 0:
            watched = self._watched.pop(tag[0], None)
            if watched is None:
                continue  # adding it has raised
            call, weak, callback = watched
            lease = weak()
            if lease is not None and lib.hf_call_result(call[0], NUL) == 0:
                try:
                    callback(lease)
                except BaseException:  # the callback's own problem, but not silently ignored
                    sys.excepthook(*sys.exc_info())
            lease = None
