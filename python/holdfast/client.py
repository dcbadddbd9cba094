"""A client: a connection to one engine, from which locks are made."""
from __future__ import annotations

import atexit
import os
import pathlib
import threading
import weakref
from typing import Any, Iterator, NamedTuple, Optional
from urllib.parse import quote

from ._calls import (FOREVER, NUL, PENDING, Start, check, is_readable_within, nanoseconds, run, seconds, text, thread_error,
                     wait_for)
from ._native import ffi, lib
from .errors import Invalid
from .lease import Lease, Watcher
from .locks import Election, Latch, Lock, ReadLock, RLock, RWLock, Semaphore, WriteLock


class Retry(NamedTuple):
    """How attempts are spaced while the engine does not answer, in seconds."""

    attempts: int = 0  #: tries in all; 1: never again; 0: no limit
    first: float = 0.05  #: the first pause is at most this, then doubled
    limit: float = 2.0  #: the longest pause
    within: Optional[float] = None  #: without a usable answer for this long: given up


class Claim(NamedTuple):
    """Somebody who holds a lock, or waits for it."""

    claim: str
    payload: str
    mode: str  #: "exclusive", "shared", "permit"
    permits: int
    fence: int  #: 0: none
    age: Optional[float]  #: holds or waits for so many seconds
    remaining: Optional[float]  #: None: does not end by time
    waiting: bool  #: False: a holder


class Name(NamedTuple):
    """A lock that is held or waited for."""

    name: str
    holders: int
    waiters: int


class Check(NamedTuple):
    """A check of the doctor's."""

    name: str
    state: str  #: "ok", "warn", "fail"
    detail: str
    remedy: str


class Event(NamedTuple):
    """What happened to a name at the engine, by any client."""

    kind: str
    name: str
    claim: str
    fence: int
    payload: str


MODES = ("exclusive", "shared", "permit")
KINDS = ("queued", "granted", "renewed", "released", "expired", "withdrawn", "forced", "leader", "no_leader", "missed")
_open_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


def default_url() -> str:
    """The file of this user, as the command line has it."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = pathlib.Path(state) if state.startswith("/") else pathlib.Path.home() / ".local" / "state"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "holdfast").mkdir(mode=0o700, exist_ok=True)
    return "sqlite:" + quote(str(folder / "holdfast" / "holdfast.db"), safe="/ -_.~")


def connect(url: Optional[str] = None, *, namespace: str = "", payload: str = "", password: str = "",
            close_within: float = 2.0, hand_over: bool = True, retry: Optional[Retry] = None) -> Client:
    """Opens a client. ``url``: ``redis://host``, ``postgresql://host/db``, ``sqlite:/file``, ... None: the file of this user,
    for the processes of one machine.

    Names in different namespaces never conflict. ``payload``: who we are, for people who look at holders.
    ``close_within``: seconds that closing may take. ``hand_over``: threads of this process pass a lock on among themselves.
    """
    return Client(url or default_url(), namespace=namespace, payload=payload, password=password,
                  close_within=close_within, hand_over=hand_over, retry=retry)


def _retry(into: Any, retry: Optional[Retry]) -> None:
    if retry is not None:
        into.attempts = retry.attempts
        into.first, into.limit = nanoseconds(retry.first), nanoseconds(retry.limit)
        into.within = 0 if retry.within is None else nanoseconds(retry.within)


class Client:
    """A connection to one engine. Thread-safe; open one per process. Made by :func:`connect`.

    After ``os.fork()`` the child's copy raises :class:`Forked`. A pickled client, as ``multiprocessing`` hands to its
    processes, is opened again there.
    """

    def __init__(self, url: str, *, namespace: str, payload: str, password: str, close_within: float, hand_over: bool,
                 retry: Optional[Retry]) -> None:
        self._arguments = (url, dict(namespace=namespace, payload=payload, password=password,
                                     close_within=close_within, hand_over=hand_over, retry=retry))
        options = ffi.new("hf_client_options *", {"size": ffi.sizeof("hf_client_options")})
        kept = [ffi.from_buffer(each.encode()) for each in (namespace, payload, password)]
        for member, each in zip((options.name_space, options.payload, options.password), kept):
            member.data, member.length = each, len(each)
        options.close_within = max(1, nanoseconds(close_within))
        options.no_hand_over = not hand_over
        _retry(options.retry, retry)
        out, raw, error = ffi.new("hf_client **"), url.encode(), thread_error()
        check(lib.hf_client_open(raw, len(raw), options, out, error), error)
        self._ptr = ffi.gc(out[0], lib.hf_client_free)
        self._lost_watcher: Optional[Watcher] = None
        self._watcher_mutex = threading.RLock()  # a signal handler or the collector may come in between
        _open_clients.add(self)

    def __reduce__(self) -> Any:
        return _reopen, self._arguments

    @property
    def engine(self) -> str:
        """``"redis"``, ``"sqlite"``, ..."""
        return text(lib.hf_client_engine(self._ptr))

    def ping(self, timeout: float = 5.0) -> None:
        """Does the engine answer? Connects, logs in and reads, once."""
        error = thread_error()
        check(lib.hf_client_ping(self._ptr, nanoseconds(timeout), error), error)

    def close(self) -> list[str]:
        """Cancels all who wait, releases all leases, and returns the names whose release was not confirmed in time: their
        ttl ends them. May be called twice."""
        out, error = ffi.new("hf_list **"), thread_error()
        check(lib.hf_client_close(self._ptr, out, error), error)
        with self._watcher_mutex:
            watcher, self._lost_watcher = self._lost_watcher, None
        if watcher is not None:
            watcher.stop()
        return [name.name for name in _names(ffi.gc(out[0], lib.hf_list_free))]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watcher(self) -> Watcher:
        with self._watcher_mutex:
            watcher = self._lost_watcher
            if watcher is None:
                watcher, others = Watcher(self), self._lost_watcher
                if others is None:
                    self._lost_watcher = watcher
                else:
                    watcher.stop()
                    watcher = others
            return watcher

    # -- locks ---------------------------------------------------------------------------------------------------------

    def _make(self, new: Any, name: str, before: tuple[Any, ...], options: dict[str, Any]) -> Any:
        given = ffi.new("hf_lock_options *", {"size": ffi.sizeof("hf_lock_options")})
        ttl = options.pop("ttl")
        if not ttl > 0:
            raise Invalid("invalid (ttl must be positive)")
        given.ttl = nanoseconds(ttl)
        given.notice, given.lock_delay = nanoseconds(options.pop("notice", 0)), nanoseconds(options.pop("lock_delay", 0))
        given.fair, given.no_renewal = options.pop("fair", False), not options.pop("renew", True)
        given.max_hold = nanoseconds(options.pop("max_hold", None)) % FOREVER  # 0: no limit
        payload = ffi.from_buffer(options.pop("payload", "").encode())
        given.payload.data, given.payload.length = payload, len(payload)
        _retry(given.retry, options.pop("retry", None))
        if options:
            raise TypeError(f"unexpected options: {', '.join(options)}")
        out, raw, error = ffi.new("hf_lock **"), name.encode(), thread_error()
        check(new(self._ptr, raw, len(raw), *before, given, out, error), error)
        return out[0]

    def lock(self, name: str, *, wait: Optional[float] = None, ttl: float = 30.0, **options: Any) -> Lock:
        """A lock by name. Nothing is sent until it is acquired.

        ``wait``: seconds that acquiring waits; None: no limit. ``ttl``: seconds that the engine keeps the lock without a sign of
        life; it is renewed in the background. Further options of all locks: ``fair=True``: granted in the order of arrival;
        ``renew=False``: taken once for ttl; ``notice``: a loss is announced so many seconds before validity ends;
        ``lock_delay``: stays blocked so long after an abnormal end; ``max_hold``: lost, and released, when it was held so
        long, however it is renewed; ``payload``: what others see beside the holder; ``retry``: a :class:`Retry`.
        """
        return Lock(self, self._make(lib.hf_mutex_new, name, (), dict(options, ttl=ttl)), name, wait)

    def rlock(self, name: str, *, wait: Optional[float] = None, ttl: float = 30.0, **options: Any) -> RLock:
        """A lock that its holder, a thread or a task, may acquire again."""
        return RLock(self, self._make(lib.hf_recursive_new, name, (), dict(options, ttl=ttl)), name, wait)

    def rwlock(self, name: str, *, wait: Optional[float] = None, ttl: float = 30.0, **options: Any) -> RWLock:
        """Many readers or one writer."""
        options["ttl"] = ttl
        return RWLock(ReadLock(self, self._make(lib.hf_shared_new, name, (), dict(options)), name, wait),
                      WriteLock(self, self._make(lib.hf_shared_new, name, (), dict(options)), name, wait))

    def semaphore(self, name: str, max: int, *, wait: Optional[float] = None, ttl: float = 30.0,
                  **options: Any) -> Semaphore:
        """At most ``max`` permits, 1 to 1,000,000. While anyone holds or waits, another number is :class:`Conflict`."""
        return Semaphore(self, self._make(lib.hf_semaphore_new, name, (max,), dict(options, ttl=ttl)), name, wait)

    def election(self, name: str, id: str = "", *, wait: Optional[float] = None, ttl: float = 30.0,
                 **options: Any) -> Election:
        """One of many leads. ``id``: shown to others; empty: the client's payload."""
        raw = id.encode()
        return Election(self, self._make(lib.hf_election_new, name, (raw, len(raw)), dict(options, ttl=ttl)), name, wait)

    def latch(self, name: str, *, life: float = 86400.0) -> Latch:
        """A count that goes down to zero. ``life``: seconds that it is kept after its last change."""
        out, raw, error = ffi.new("hf_latch **"), name.encode(), thread_error()
        check(lib.hf_latch_new(self._ptr, raw, len(raw), nanoseconds(life), out, error), error)
        return Latch(self, out[0], name)

    # -- leases that move ----------------------------------------------------------------------------------------------

    def adopt(self, token: str, *, ttl: Optional[float] = None, renew: bool = True, notice: float = 0.0,
              max_hold: Optional[float] = None, wait: float = 5.0) -> Lease:
        """Continues a lease that :meth:`Lease.detach` has turned into a token, by any process with the same engine and
        namespace: with the same fence, renewed as from now. Once: the token is used up by it.

        ``ttl``: of the lease from now on; None: what it had. ``renew``, ``notice``, ``max_hold``: as of :meth:`lock`.
        ``wait``: how long an engine that does not answer is asked again. :class:`Invalid`: not a token, or one of another
        engine or namespace; :class:`Lost`: the lease has ended, was adopted or released before, or was revoked;
        :class:`Unavailable`: no answer in time: if the token is used up, the lock is released in the background, else it
        is as it was.
        """
        return self._adopted(wait_for(self._adopting(token, ttl, renew, notice, max_hold, wait)))

    async def adopt_async(self, token: str, *, ttl: Optional[float] = None, renew: bool = True, notice: float = 0.0,
                          max_hold: Optional[float] = None, wait: float = 5.0) -> Lease:
        """:meth:`adopt` in a coroutine."""
        return self._adopted(await run(self._adopting(token, ttl, renew, notice, max_hold, wait)))

    def _adopting(self, token: str, ttl: Optional[float], renew: bool, notice: float, max_hold: Optional[float],
                  wait: float) -> Start:
        given = ffi.new("hf_adopt_options *", {"size": ffi.sizeof("hf_adopt_options")})
        given.ttl, given.notice = _ttl(ttl), nanoseconds(notice)
        given.max_hold = nanoseconds(max_hold) % FOREVER  # 0: no limit
        given.wait, given.no_renewal = max(1, nanoseconds(wait)), not renew
        raw = token.encode()
        return lambda queue, tag, out, error: lib.hf_adopt_start(self._ptr, raw, len(raw), given, queue, tag, out, error)

    def _adopted(self, call: Any) -> Lease:
        return Lease(lambda out, error: lib.hf_call_lease(call[0], out, error), self, self)

    def renew_token(self, token: str, ttl: Optional[float] = None) -> None:
        """For those who only pass a token on: the lease ends ``ttl`` seconds after this call; None: after the time that it was
        acquired with. Waits at most 5 s, and raises what :meth:`adopt` does."""
        wait_for(self._renewing(token, ttl))

    async def renew_token_async(self, token: str, ttl: Optional[float] = None) -> None:
        await run(self._renewing(token, ttl))

    def _renewing(self, token: str, ttl: Optional[float]) -> Start:
        raw, lasts = token.encode(), _ttl(ttl)
        return lambda queue, tag, out, error: lib.hf_renew_token_start(
            self._ptr, raw, len(raw), lasts, queue, tag, out, error)

    def release_token(self, token: str) -> None:
        """Frees the lock of a token at once. Waits at most 5 s, and raises what :meth:`adopt` does; after
        :class:`Unavailable` the ttl ends it."""
        wait_for(self._releasing(token))

    async def release_token_async(self, token: str) -> None:
        await run(self._releasing(token))

    def _releasing(self, token: str) -> Start:
        raw = token.encode()
        return lambda queue, tag, out, error: lib.hf_release_token_start(
            self._ptr, raw, len(raw), queue, tag, out, error)

    # -- for operators -------------------------------------------------------------------------------------------------

    def inspect(self, name: str) -> list[Claim]:
        """Who holds, and behind them who waits, in order. Waits at most 5 s, as the other calls for operators."""
        out, raw, error = ffi.new("hf_list **"), name.encode(), thread_error()
        check(lib.hf_inspect(self._ptr, raw, len(raw), out, error), error)
        return _claims(ffi.gc(out[0], lib.hf_list_free))

    def names(self, prefix: str = "") -> list[Name]:
        """Names that are held or waited for. On Redis it waits at most 5 s for each part of the answer, and 60 s for all."""
        out, raw, error = ffi.new("hf_list **"), prefix.encode(), thread_error()
        check(lib.hf_names(self._ptr, raw, len(raw), out, error), error)
        return list(_names(ffi.gc(out[0], lib.hf_list_free)))

    def doctor(self) -> list[Check]:
        """The checks of ``holdfast doctor``."""
        out, error = ffi.new("hf_list **"), thread_error()
        check(lib.hf_doctor(self._ptr, out, error), error)
        found, row = ffi.gc(out[0], lib.hf_list_free), _row("hf_check")
        made = []
        for index in range(lib.hf_list_count(found)):
            check(lib.hf_list_check(found, index, row, error), error)
            made.append(Check(text(row.name), ("ok", "warn", "fail")[row.state], text(row.detail), text(row.remedy)))
        return made

    def revoke(self, name: str, *, force: bool = False, claim: str = "") -> list[Claim]:
        """Break-glass: takes a lock away; who held it. Without ``force`` nobody else gets it before the lease has ended; with
        it the lock is free at once, and two may run until the holder learns."""
        out, raw, error = ffi.new("hf_list **"), name.encode(), thread_error()
        which = claim.encode()
        check(lib.hf_revoke(self._ptr, raw, len(raw), 0 if force else 1, which, len(which), out, error), error)
        return _claims(ffi.gc(out[0], lib.hf_list_free))

    def watch(self, name: str = "", timeout: Optional[float] = None) -> Iterator[Event]:
        """Events of one name, or of all; ends when none came for ``timeout`` seconds. Ctrl-C ends it."""
        limit = nanoseconds(timeout)
        out, raw, error = ffi.new("hf_watch **"), name.encode(), thread_error()
        check(lib.hf_observe(self._ptr, raw if raw else NUL, len(raw), out, error), error)
        return _events(self, ffi.gc(out[0], lib.hf_watch_free), limit)


def _reopen(url: str, options: dict[str, Any]) -> Client:
    return Client(url, **options)


def _ttl(seconds_: Optional[float]) -> int:
    """None: 0, as it was."""
    return 0 if seconds_ is None else max(1, nanoseconds(seconds_))


def _row(kind: str) -> Any:
    return ffi.new(kind + " *", {"size": ffi.sizeof(kind)})


def _time(value: int) -> Optional[float]:
    return None if value < 0 else seconds(value)


def _claims(found: Any) -> list[Claim]:
    row, error, made = _row("hf_claim"), thread_error(), []
    for index in range(lib.hf_list_count(found)):
        check(lib.hf_list_claim(found, index, row, error), error)
        made.append(Claim(text(row.claim), text(row.payload), MODES[row.mode], row.permits, row.fence, _time(row.age),
                          _time(row.remaining), bool(row.waiting)))
    return made


def _names(found: Any) -> list[Name]:
    row, error, made = _row("hf_name"), thread_error(), []
    for index in range(lib.hf_list_count(found)):
        check(lib.hf_list_name(found, index, row, error), error)
        made.append(Name(text(row.name), row.holders, row.waiters))
    return made


def _events(client: Client, watch: Any, limit: int) -> Iterator[Event]:
    """``client``: stays open while its events are read."""
    row = _row("hf_event")
    while True:
        error = thread_error()
        status = lib.hf_watch_next(watch, row, error)
        if status == PENDING:
            if not is_readable_within(lib.hf_watch_fd(watch), limit):
                return
            continue
        check(status, error)
        yield Event(KINDS[row.kind], text(row.name), text(row.claim), row.fence, text(row.payload))


@atexit.register
def _close_all() -> None:
    """What is held when the interpreter ends is released, not left to its ttl."""
    for client in list(_open_clients):
        lib.hf_client_close(client._ptr, NUL, NUL)
