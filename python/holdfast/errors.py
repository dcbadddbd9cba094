"""What can go wrong. All are subclasses of :class:`Error`; where Python has an exception for it, of that too."""
from __future__ import annotations

from typing import Any

from ._native import ffi, lib


class Error(Exception):
    """A call could not do what was asked. ``code`` is the stable number of the C interface."""

    code = 0

    def __init__(self, message: str = "", *, unsent: bool = False) -> None:
        super().__init__(message)
        #: With :class:`Unavailable`: nothing was sent, so nothing can have happened.
        self.unsent = unsent


class NotGranted(Error):
    """Another has the lock: :class:`Busy` or :class:`TimedOut`."""


class Busy(NotGranted):
    """``wait`` was zero and the lock was not free."""

    code = 1


class TimedOut(NotGranted, TimeoutError):
    """Not granted within ``wait``."""

    code = 2


class Cancelled(Error):
    """The client was closed."""

    code = 3


class Forked(Cancelled):
    """The client was opened in the parent process: open one in the child."""


class Lost(Error):
    """The lease had ended before. What was done in the meantime is protected by its fence only."""

    code = 4


class NotHeld(Error):
    """Nothing of ours to release or change."""

    code = 5


class WouldDeadlock(Error):
    """Two upgrades would wait for each other."""

    code = 6


class Unavailable(Error, ConnectionError):
    """No usable answer. The outcome is unknown, and resolved in the background."""

    code = 7


class Denied(Error, PermissionError):
    """The engine refuses us; the message says what to grant."""

    code = 8


class Conflict(Error):
    """Same name, other parameters: a semaphore's ``max``, a live latch."""

    code = 9


class NameConflict(Error):
    """Something else lives under this name; it is never overwritten."""

    code = 10


class Overloaded(Error):
    """A limit is reached: memory, descriptors, threads, a queue."""

    code = 11


class Unsupported(Error):
    """This engine cannot do it; the message says why."""

    code = 12


class Invalid(Error, ValueError):
    """An argument is out of its limits."""

    code = 13


class Internal(Error):
    """A defect of the library; please report it."""

    code = 14


_BY_CODE: dict[int, type[Error]] = {
    kind.code: kind
    for kind in (Busy, TimedOut, Cancelled, Lost, NotHeld, WouldDeadlock, Unavailable, Denied, Conflict, NameConflict,
                 Overloaded, Unsupported, Invalid, Internal)
}
_IN_CHILD = "made in the parent process"


def new_error() -> Any:
    """An ``hf_error`` to be filled."""
    error = ffi.new("hf_error *")
    error.size = ffi.sizeof("hf_error")
    return error


def exception_of(status: int, error: Any) -> Error:
    """What to raise for a call that answered ``status`` and filled ``error``."""
    message = ffi.string(error.message).decode(errors="replace")
    kind = _BY_CODE.get(status, Internal)
    if kind is Cancelled and _IN_CHILD in message:
        kind = Forked
    return kind(message, unsent=bool(error.unsent))


def describe(status: int) -> str:
    """The sentence for a status: "timed out"."""
    return ffi.string(lib.hf_describe(status)).decode()
