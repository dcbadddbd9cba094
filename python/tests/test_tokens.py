"""Leases that move between processes. Broken: two processes hold a lock with one token, a step of a pipeline works under
another fence, or a token that is not good does something."""
import asyncio
import os
import signal

import pytest

import holdfast
import servers
from test_processes import python

ADOPT = ("import sys, holdfast\n"
         "client = holdfast.connect(sys.argv[1])\n"
         "lease = client.adopt(sys.stdin.readline().strip())\n"
         "print(lease.fence, lease.name, flush=True)\n")


def continues(url, token, then):
    """Another process that adopts the token: what it says of the lease, and the process."""
    process = python(ADOPT + then, url, line=token)
    return process.stdout.readline().split(), process


def test_another_process_continues_a_lease(client, url, name):
    lease = client.lock(name, ttl=600).acquire()
    fence, lost = lease.fence, lease.lost
    token = lease.detach()
    assert lease.released and not lease.valid and not lost and fence == lease.fence
    with pytest.raises(holdfast.NotHeld):
        lease.release()
    with pytest.raises(holdfast.NotHeld):
        lease.detach()
    assert client.lock(name).try_acquire() is None
    said, process = continues(url, token, "sys.stdin.readline()\nlease.release()\n")
    assert said == [str(fence), name]
    assert client.lock(name).try_acquire() is None
    for call in (client.adopt, client.renew_token, client.release_token):  # it is used up
        with pytest.raises(holdfast.Lost) as why:
            call(token)
        assert token not in str(why.value)
    _, errors = process.communicate("\n", timeout=servers.LIMIT)
    assert (process.returncode, errors) == (0, "")
    with client.lock(name, wait=servers.LIMIT) as after:
        assert after.fence > fence


def test_a_lease_that_nobody_continues_ends_with_its_ttl_though_its_process_lives(client, other, name):
    token = client.lock(name, ttl=1).acquire().detach()
    with other.lock(name, wait=servers.LIMIT) as lease:
        for call in (client.adopt, client.renew_token, client.release_token):
            with pytest.raises(holdfast.Lost):
                call(token)
        assert lease.valid


def test_a_killed_adopter_s_lease_ends_with_its_ttl(client, url, name):
    token = client.lock(name, ttl=1).acquire().detach()
    client.renew_token(token, ttl=600)  # until the other process runs
    said, process = continues(url, token, "__import__('os').kill(__import__('os').getpid(), 9)\n")
    process.communicate(timeout=servers.LIMIT)
    assert process.returncode == -signal.SIGKILL
    client.lock(name).acquire(servers.LIMIT).release()


def test_a_token_is_renewed_and_released(client, other, name):
    token = client.lock(name, ttl=60).acquire().detach()
    other.renew_token(token, ttl=600)
    assert client.inspect(name)[0].remaining > 300
    other.renew_token(token)
    assert client.inspect(name)[0].remaining <= 60
    with pytest.raises(holdfast.Invalid):
        other.renew_token(token, ttl=0.001)
    other.release_token(token)
    with pytest.raises(holdfast.Lost):
        other.release_token(token)
    with client.lock(name, wait=servers.LIMIT):
        pass


def test_bad_tokens_are_invalid_and_change_nothing(client, url, name, tmp_path):
    token = client.lock(name, ttl=600).acquire().detach()
    engine = holdfast.connect(f"sqlite:{tmp_path}/other.db" if client.engine != "sqlite" else "memory:")
    elsewhere = holdfast.connect(url, namespace="other")
    for who, what in ((engine, token), (elsewhere, token), (client, ""), (client, "hft1_"), (client, token[:-1])):
        for call in (who.adopt, who.renew_token, who.release_token):
            with pytest.raises(holdfast.Invalid):
                call(what)
    engine.close()
    elsewhere.close()
    client.adopt(token).release()


def test_options_of_an_adoption(client, name):
    token = client.lock(name, ttl=600).acquire().detach()
    with client.adopt(token, ttl=60, wait=servers.LIMIT) as lease:
        assert lease.ttl == 60 or client.engine == "sqlite"  # where holds do not end by time
    token = client.lock(name, ttl=600).acquire().detach()
    lease = client.adopt(token, max_hold=0.2)
    assert lease.lost.wait(servers.LIMIT)
    token = client.lock(name, ttl=600, wait=servers.LIMIT).acquire().detach()
    lease = client.adopt(token, ttl=0.3, renew=False)
    assert lease.lost.wait(servers.LIMIT)
    client.lock(name).acquire(servers.LIMIT).release()


def test_what_cannot_be_detached_goes_on(client, name):
    for lock in (client.election(name), client.rlock(name), holdfast.multi(client.lock(name))):
        with lock as lease:
            with pytest.raises(holdfast.Unsupported):
                lease.detach()
            assert lease.valid and not lease.released


def test_readers_and_permits_move_as_what_they_are(client, other, name):
    rw = client.rwlock(name + "/rw", ttl=600)
    with other.rwlock(name + "/rw").read:
        with other.adopt(rw.read.acquire().detach()):
            assert len(client.inspect(name + "/rw")) == 2
    permits = client.semaphore(name + "/s", 3, ttl=600)
    with other.adopt(permits.permits(2).acquire().detach()):
        assert permits.available() == 1
    assert permits.available() == 3


def test_in_asyncio(client, other, name):
    async def main():
        async with client.lock(name, ttl=600) as lease:
            fence = lease.fence
            token = await lease.detach_async()
            assert not lease.lost and lease.released
        await other.renew_token_async(token)
        async with await other.adopt_async(token, wait=servers.LIMIT) as adopted:
            assert adopted.fence == fence and adopted.valid
            with pytest.raises(holdfast.Lost):
                await client.adopt_async(token)
        with pytest.raises(holdfast.Lost):
            await other.renew_token_async(token)
        lease = await client.lock(name, ttl=600, wait=servers.LIMIT).acquire_async()
        await other.release_token_async(await lease.detach_async())
        async with client.election(name, wait=servers.LIMIT) as term:
            with pytest.raises(holdfast.Unsupported):
                await term.detach_async()
            assert term.valid and not term.released
    asyncio.run(main())


def test_of_many_tasks_with_one_token_one_adopts(client, other, name):
    async def main():
        token = client.lock(name, ttl=600).acquire().detach()
        answers = await asyncio.gather(*(who.adopt_async(token) for who in (client, other) for _ in range(10)),
                                       return_exceptions=True)
        adopted = [each for each in answers if isinstance(each, holdfast.Lease)]
        assert len(adopted) == 1 and adopted[0].valid
        assert all(isinstance(each, holdfast.Lost) for each in answers if each is not adopted[0])
        adopted[0].release()
    for _ in range(5):
        asyncio.run(main())


def test_a_forked_child_s_copy_of_the_client_refuses(client, name):
    token = client.lock(name, ttl=600).acquire().detach()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (client.adopt, client.renew_token, client.release_token):
                with pytest.raises(holdfast.Forked):
                    call(token)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    client.release_token(token)
