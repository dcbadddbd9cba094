"""The same locks in asyncio. Broken: a waiting coroutine needs a thread, a cancelled one keeps the lock, or a lost lease
goes unnoticed."""
import asyncio
import subprocess
import sys
import threading

import pytest

import holdfast
import servers


def test_async_with_excludes_and_counts_exactly(client, name):
    lock, inside, most = client.lock(name), [0], [0]

    async def work():
        async with lock as lease:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            assert lease.valid
            await asyncio.sleep(0)
            inside[0] -= 1
        return lease.fence

    async def main():
        return await asyncio.gather(*(work() for _ in range(200)))
    fences = asyncio.run(main())
    assert most == [1] and len(set(fences)) == 200


def test_a_wait_ends_in_time_and_by_cancellation(client, other, name):
    async def main():
        lock = other.lock(name, fair=True)
        with client.lock(name, fair=True):
            with pytest.raises(holdfast.Busy):
                await lock.acquire_async(0)
            loop = asyncio.get_running_loop()

            def wait(seconds):
                return asyncio.run_coroutine_threadsafe(lock.acquire_async(seconds), loop).result()
            assert await asyncio.to_thread(servers.times_out, wait)
            task = asyncio.create_task(lock.acquire_async())
            assert await asyncio.to_thread(servers.eventually, lambda: len(client.inspect(name)) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(servers.eventually, lambda: len(client.inspect(name)) == 1)
        async with lock:
            pass
    asyncio.run(main())


def test_a_cancelled_wait_leaves_the_queue_though_its_task_is_kept(client, other, name):
    """The task keeps the exception, and that the frames in which the call is."""
    async def main():
        with client.lock(name, fair=True):
            task = asyncio.create_task(other.lock(name, fair=True).acquire_async())
            assert await asyncio.to_thread(servers.eventually, lambda: len(client.inspect(name)) == 2)
            task.cancel()
            await asyncio.wait({task})
            assert await asyncio.to_thread(servers.eventually, lambda: len(client.inspect(name)) == 1)
            assert task.cancelled()
    asyncio.run(main())


def test_a_grant_that_meets_a_cancellation_is_given_back(client, name):
    """The answer is there, and the task is cancelled before it could look."""
    async def main():
        lock = client.lock(name)
        for _ in range(50):
            task = asyncio.create_task(lock.acquire_async())
            await asyncio.sleep(0.001)
            task.cancel()
            try:
                (await task).release()
            except asyncio.CancelledError:
                pass
        async with client.lock(name, wait=servers.LIMIT):
            pass
    asyncio.run(main())


def test_a_lock_of_a_generator_is_released_by_whoever_closes_it(client, other, name):
    async def steps(lock):
        async with lock as lease:
            yield lease

    async def main():
        async for lease in steps(client.lock(name)):
            break
        del lease  # the generator has it, and is closed in a task of the loop's
        async with other.lock(name, wait=servers.LIMIT):
            pass
    asyncio.run(main())


def test_a_guard_cancels_its_body_when_the_lease_is_lost(client, other, name):
    async def main():
        lease = await client.lock(name).acquire_async()
        with pytest.raises(holdfast.Lost):
            async with lease.guard():
                await asyncio.to_thread(other.revoke, name, force=True)
                await asyncio.sleep(servers.LIMIT)
        assert lease.lost
        assert await lease.lost
        assert asyncio.current_task().cancelled() is False
        async with client.lock(name, wait=servers.LIMIT) as lease:
            async with lease.guard():  # not lost: nothing happens
                await asyncio.sleep(0)
            waiting = asyncio.ensure_future(lease.lost._wait_async())
            await asyncio.sleep(0)
        assert await waiting is False  # released, not lost
    asyncio.run(main())


def test_a_cancellation_from_outside_passes_a_guard(client, name):
    async def body():
        async with client.lock(name) as lease:
            async with lease.guard():
                await asyncio.sleep(servers.LIMIT)

    async def main():
        task = asyncio.create_task(body())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    asyncio.run(main())


def test_a_recursive_lock_belongs_to_its_task(client, name):
    lock = client.rlock(name)

    async def stranger():
        with pytest.raises(holdfast.Busy):
            await lock.acquire_async(0)

    async def main():
        async with lock as outer:
            async with lock as inner:
                assert inner.fence == outer.fence
                await asyncio.create_task(stranger())
        await (await lock.acquire_async()).release_async()
    asyncio.run(main())


def test_the_other_primitives(client, name):
    async def main():
        rw = client.rwlock(name + "/rw")
        async with rw.read as reader:
            await rw.read.upgrade_async(reader)
            await rw.write.downgrade_async(reader)
        async with client.semaphore(name + "/s", 3).permits(2):
            pass
        async with holdfast.multi(client.lock(name + "/1"), client.lock(name + "/2")) as leases:
            assert len(leases.fences) == 2
        election = client.election(name + "/e", "me")
        async with election:
            assert (await election.leader_async()).id == "me"
        latch = client.latch(name + "/l")
        waiting = asyncio.create_task(latch.wait_async())
        await latch.set_async(2)
        assert await latch.count_down_async(2) == 0
        await waiting
        assert await latch.count_async() == 0
    asyncio.run(main())


def test_loops_of_several_threads_share_a_client(client, name):
    lock, count = client.lock(name), [0]

    async def work():
        for _ in range(20):
            async with lock:
                count[0] += 1
    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [80]


CROWD = """
import asyncio, sys, threading
import holdfast

def memory():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024

def threads():
    return int(next(line for line in open("/proc/self/status") if line.startswith("Threads")).split()[1])

async def main():
    client = holdfast.connect(sys.argv[1])
    lock = client.lock(sys.argv[2])
    lease = await lock.acquire_async()
    before, threads_before = memory(), threads()
    done = [0]
    async def wait():
        async with lock:
            done[0] += 1
    tasks = [asyncio.create_task(wait()) for _ in range(10000)]
    while len(holdfast._calls.LoopQueue.current()._waiting) < 10000:
        await asyncio.sleep(0.01)
    print(memory() - before, threads() - threads_before)
    await lease.release_async()
    await asyncio.gather(*tasks)
    assert done == [10000]

asyncio.run(main())
"""


@pytest.mark.once
def test_ten_thousand_coroutines_wait_without_threads_in_100_mib(url, name):
    said = subprocess.run([sys.executable, "-c", CROWD, url, name], capture_output=True, text=True, timeout=servers.LIMIT)
    assert said.returncode == 0, said.stderr
    memory, threads = map(float, said.stdout.split())
    assert memory < 100 and threads < 5  # a client starts one or two of its own when it first needs them
