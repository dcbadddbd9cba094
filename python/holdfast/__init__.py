"""Distributed locks with fencing tokens, on a file, Redis, PostgreSQL, etcd, ZooKeeper or MariaDB.

    client = holdfast.connect("redis://localhost")               # or nothing: a file, for one machine
    with client.lock("stock/42", wait=1.0, ttl=10) as lease:     # raises Busy, TimedOut
        write(order, fence=lease.fence)

    async with client.lock("stock/42", wait=1.0) as lease:       # the same object, in asyncio
        async with lease.guard():                                # cancels the body when the lease is lost
            await work()
"""
from ._native import ffi as _ffi, lib as _lib
from .client import Check, Claim, Client, Event, Name, Retry, connect
from .errors import (Busy, Cancelled, Conflict, Denied, Error, Forked, Internal, Invalid, Lost, NameConflict, NotGranted,
                     NotHeld, Overloaded, TimedOut, Unavailable, Unsupported, WouldDeadlock)
from .lease import Guard, Lease, LostFlag
from .locks import (Acquirable, Election, Latch, Leader, Lock, MultiLock, Permits, ReadLock, RLock, RWLock, Semaphore,
                    WriteLock, multi)

__version__ = _ffi.string(_lib.hf_version()).decode()

__all__ = ["Acquirable", "Busy", "Cancelled", "Check", "Claim", "Client", "Conflict", "Denied", "Election", "Error", "Event",
           "Forked", "Guard", "Internal", "Invalid", "Latch", "Leader", "Lease", "Lock", "Lost", "LostFlag", "MultiLock",
           "Name", "NameConflict", "NotGranted", "NotHeld", "Overloaded", "Permits", "RLock", "RWLock", "ReadLock", "Retry",
           "Semaphore", "TimedOut", "Unavailable", "Unsupported", "WouldDeadlock", "WriteLock", "connect", "multi"]
