"""How calls wait: blocking, with Ctrl-C, and in an event loop without a thread."""
from __future__ import annotations

import asyncio
import itertools
import math
import select
import threading
import weakref
from typing import Any, Callable, Optional

from ._native import ffi, lib
from .errors import Invalid, exception_of, new_error

PENDING = 15
FOREVER = 2**63 - 1
LONGEST_POLL = 2**31 - 1  # milliseconds
NUL = ffi.NULL
#: Starts a call for a queue and a tag, into an ``hf_call **``, with an ``hf_error *``: the status.
Start = Callable[[Any, int, Any, Any], int]

_local = threading.local()
_main_thread = threading.main_thread


def thread_error() -> Any:
    """This thread's ``hf_error``: filled by a call, and read before the next."""
    try:
        return _local.error
    except AttributeError:
        _local.error = new_error()
        return _local.error


def check(status: int, error: Any) -> None:
    """Raises what the status stands for."""
    if status:
        raise exception_of(status, error)


def nanoseconds(seconds: Optional[float]) -> int:
    """``None`` and infinity: no limit. Less than nothing: 0."""
    if seconds is None or seconds >= FOREVER / 1e9:
        return FOREVER
    if seconds > 0:
        return min(FOREVER, round(seconds * 1e9))
    if seconds <= 0:
        return 0
    raise Invalid("invalid (a time is not a number)")


def seconds(nanoseconds_: int) -> float:
    return math.inf if nanoseconds_ == FOREVER else nanoseconds_ / 1e9


def text(value: Any) -> str:
    """An ``hf_text`` as a string."""
    return "" if value.data == NUL else ffi.buffer(value.data, value.length)[:].decode(errors="replace")


def is_main_thread() -> bool:
    return threading.current_thread() is _main_thread()


def is_readable_within(fd: int, limit: int) -> bool:
    """Waits at most ``limit`` nanoseconds, in Python: a signal handler may raise."""
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    left = -(-limit // 1_000_000)
    while left > LONGEST_POLL:
        if ready.poll(LONGEST_POLL):
            return True
        left -= LONGEST_POLL
    return bool(ready.poll(left))


def new_call() -> Any:
    """A cell for a call, which is cancelled when the cell goes away without an answer. It has an owner before it begins: a
    signal handler may raise as soon as it has begun."""
    return ffi.gc(ffi.new("hf_call **"), lib.free_call_in)


def start(call: Any, how: Start, queue: Any = NUL, tag: int = 0) -> None:
    error = thread_error()
    check(how(queue, tag, call, error), error)


def wait_for(how: Start, wait: Optional[float] = None) -> Any:
    """Starts a call and waits for its answer, at most ``wait``; Ctrl-C ends it. The call's cell, or None: no answer yet."""
    call = new_call()
    try:
        start(call, how)
        return call if _is_answered(call[0], wait) else None
    except BaseException:
        ffi.release(call)  # not with its last reference, which the exception has: that may be kept
        raise


def _is_answered(call: Any, wait: Optional[float]) -> bool:
    """Waits, and raises what the call has failed with. An exception from a signal handler comes out of it, too."""
    limit, error = nanoseconds(wait), thread_error()
    if not is_main_thread():
        # Signals are handled by the main thread.
        status = lib.hf_call_wait(call, limit, error)
    else:
        status = lib.hf_call_result(call, error)
        if status == PENDING and limit:
            fd = ffi.new("int *")
            check(lib.hf_call_fd(call, fd, error), error)
            is_readable_within(fd[0], limit)
            status = lib.hf_call_result(call, error)
    if status == PENDING:
        return False
    check(status, error)
    return True


class LoopQueue:
    """The answers for one event loop: one descriptor, however many wait."""

    _of_loop: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopQueue]" = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        out = ffi.new("hf_queue **")
        error = thread_error()
        check(lib.hf_queue_new(out, error), error)
        self._queue = ffi.gc(out[0], lib.hf_queue_free)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._tags = itertools.count(1)
        self._room = ffi.new("uint64_t[256]")
        self._count = ffi.new("size_t *")
        self._error = new_error()
        loop.add_reader(lib.hf_queue_fd(self._queue), self._answered)

    @classmethod
    def current(cls) -> LoopQueue:
        loop = asyncio.get_running_loop()
        queue = cls._of_loop.get(loop)
        if queue is None:
            queue = cls._of_loop[loop] = cls(loop)
        return queue

    async def run(self, how: Start) -> Any:
        """Starts a call and waits for its answer: the call's cell. Cancelling gives back what was granted."""
        tag, call = next(self._tags), new_call()
        future = self._waiting[tag] = asyncio.get_running_loop().create_future()
        try:
            start(call, how, self._queue, tag)
            await future
            error = thread_error()
            check(lib.hf_call_result(call[0], error), error)
            return call
        except BaseException:
            ffi.release(call)  # as in wait_for
            raise
        finally:
            self._waiting.pop(tag, None)

    def _answered(self) -> None:
        while lib.hf_queue_next(self._queue, self._room, 256, self._count, self._error) == 0:
            for index in range(self._count[0]):
                future = self._waiting.pop(self._room[index], None)
                if future is not None and not future.done():
                    future.set_result(None)


async def run(how: Start) -> Any:
    return await LoopQueue.current().run(how)
