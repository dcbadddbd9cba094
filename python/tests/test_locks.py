"""The primitives, blocking. Broken: a Python program holds what it does not have, or cannot say why it does not."""
import math
import os
import pathlib
import pickle
import queue
import subprocess
import sys
import threading

import pytest

import holdfast
import servers


@pytest.fixture
def often_switched():
    """Threads take turns at nearly every step."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_lock_excludes_and_its_fence_grows(client, other, name):
    with client.lock(name, wait=servers.LIMIT) as lease:
        assert lease.valid and not lease.lost and lease.valid_for > 0
        assert lease.name == name and lease.fence > 0 and lease.claim and not lease.degraded
        with pytest.raises(holdfast.Busy):
            other.lock(name).acquire(0)

        def enter(seconds):
            with other.lock(name, wait=seconds):
                pass
        assert servers.times_out(enter)
        assert issubclass(holdfast.TimedOut, TimeoutError)  # Python's own name for it
        assert servers.times_out(other.lock(name).acquire)
        assert other.lock(name).try_acquire() is None
        assert other.lock(name).locked()
        before = lease.fence
    assert lease.released and not lease.valid and not lease.lost
    again = other.lock(name).acquire()
    assert again.fence > before
    again.release()
    with pytest.raises(holdfast.NotHeld):
        again.release()


def test_a_lease_that_goes_away_is_released(client, other, name):
    lease = client.lock(name).acquire()
    assert other.lock(name).try_acquire() is None
    del lease
    other.lock(name).acquire(servers.LIMIT).release()


def test_a_loss_is_a_flag_a_wait_a_callback_and_an_error(client, other, name):
    heard = threading.Event()
    lock = client.lock(name)
    with pytest.raises(holdfast.Lost):
        with lock as lease:
            lease.lost.add_callback(lambda lost: heard.set())
            assert not lease.lost.wait(0.01)
            assert other.revoke(name, force=True)[0].fence == lease.fence
            assert lease.lost.wait(servers.LIMIT)
            assert lease.lost and not lease.valid
            assert heard.wait(servers.LIMIT)
            with pytest.raises(holdfast.Lost):
                lease.check()
    with pytest.raises(ZeroDivisionError):  # what the body raised is not hidden
        with lock as lease:
            other.revoke(name, force=True)
            lease.lost.wait(servers.LIMIT)
            1 / 0


def test_with_ends_in_another_thread_than_it_began_in(client, other, name):
    """As in fixtures, and in dependencies of web frameworks."""
    lock = client.semaphore(name, 2)
    begun, may_end, mine = threading.Event(), threading.Event(), []

    def begin():
        lock.__enter__()

    def stay():
        mine.append(lock.__enter__())
        begun.set()
        may_end.wait(servers.LIMIT)
        lock.__exit__(None, None, None)
    alive = threading.Thread(target=stay)
    alive.start()
    assert begun.wait(servers.LIMIT)
    ended = threading.Thread(target=begin)
    ended.start()
    ended.join()
    assert other.semaphore(name, 2).try_acquire() is None
    lock.__exit__(None, None, None)  # of the thread that has ended, not of the one that is in its block
    with other.semaphore(name, 2, wait=servers.LIMIT):
        assert mine[0].valid
    may_end.set()
    alive.join()
    with other.semaphore(name, 2, wait=servers.LIMIT).permits(2):
        pass
    with pytest.raises(holdfast.NotHeld):
        lock.__exit__(None, None, None)


def test_with_is_begun_by_some_threads_and_ended_by_others(client, name, often_switched):
    lock, begun, problems = client.semaphore(name, 100, wait=servers.LIMIT), queue.SimpleQueue(), []

    def begin():
        lock.__enter__()
        begun.put(None)

    def end():
        begun.get(timeout=servers.LIMIT)
        lock.__exit__(None, None, None)

    def often(step):
        try:
            for _ in range(500):
                step()
        except BaseException as problem:
            problems.append(problem)
    threads = [threading.Thread(target=often, args=(step,)) for step in (begin, end) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with client.semaphore(name, 100, wait=servers.LIMIT).permits(100):
        pass


def test_a_client_has_one_thread_for_callbacks(client, often_switched):
    barrier, watchers = threading.Barrier(16), []

    def add():
        barrier.wait(servers.LIMIT)
        watchers.append(client._watcher())
    threads = [threading.Thread(target=add) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(watchers)) == 1


def test_the_thread_for_callbacks_ends_with_its_client(url, name):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))
    threads_before, descriptors_before = threading.active_count(), descriptors()
    client = holdfast.connect(url)
    lease = client.lock(name).acquire()
    lease.lost.add_callback(print)
    del client, lease
    assert servers.eventually(lambda: threading.active_count() <= threads_before)
    assert servers.eventually(lambda: descriptors() <= descriptors_before)


def test_a_callback_that_exits_does_not_keep_others_from_being_called(client, other, name, monkeypatch):
    heard, said = threading.Event(), []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: said.append(kind))
    first, second = client.lock(name + "/1", ttl=1).acquire(), client.lock(name + "/2", ttl=1).acquire()
    first.lost.add_callback(lambda _: sys.exit(1))
    second.lost.add_callback(lambda _: heard.set())
    other.revoke(name + "/1", force=True)
    assert first.lost.wait(servers.LIMIT)
    other.revoke(name + "/2", force=True)
    assert heard.wait(servers.LIMIT)
    assert said == [SystemExit]


NO_TIME = """
import sys, threading, holdfast
client = holdfast.connect(sys.argv[1])
lease, answers = client.lock(sys.argv[2]).acquire(), []
def wait(seconds):
    answers.append((lease.lost.wait(seconds), list(client.watch(sys.argv[2], timeout=seconds))))
for seconds in (-1, -0.0001, float("-inf")):
    wait(seconds)
    thread = threading.Thread(target=wait, args=(seconds,))
    thread.start()
    thread.join()
print(answers == 6 * [(False, [])])
"""


def test_a_wait_of_less_than_nothing_ends_at_once(url, name):
    said = subprocess.run([sys.executable, "-c", NO_TIME, url, name], capture_output=True, text=True, timeout=servers.LIMIT)
    assert (said.stdout, said.stderr) == ("True\n", "")


@pytest.mark.parametrize("seconds", [30 * 86400, 1e300])
def test_a_wait_may_be_longer_than_poll_waits(client, other, name, monkeypatch, seconds):
    def wait():
        events = other.watch(name, timeout=seconds)
        lease = client.lock(name, wait=servers.LIMIT, ttl=1).acquire()
        revoked = threading.Thread(target=other.revoke, args=(name,), kwargs={"force": True})
        revoked.start()
        assert lease.lost.wait(seconds)
        revoked.join()
        assert next(event for event in events if event.kind == "granted").fence == lease.fence
    wait()
    monkeypatch.setattr(holdfast._calls, "LONGEST_POLL", 1)  # then it is several polls
    wait()
    assert not client.lock(name, wait=servers.LIMIT).acquire().lost.wait(0.02)


def test_a_time_is_a_number(client, name):
    for wrong in (lambda: client.lock(name, ttl=math.nan), lambda: client.lock(name).acquire(math.nan),
                  lambda: client.watch(name, timeout=math.nan)):
        with pytest.raises(holdfast.Invalid):
            wrong()


def test_a_recursive_lock_is_entered_again(client, other, name):
    lock = client.rlock(name)
    with lock as outer:
        with lock as inner:
            assert inner.fence == outer.fence
        with client.rlock(name) as inner:  # by name, not by object
            assert inner.fence == outer.fence
        assert outer.valid
        assert other.rlock(name).try_acquire() is None
        refused = []
        thread = threading.Thread(target=lambda: refused.append(lock.try_acquire()))
        thread.start()
        thread.join()
        assert refused == [None]
    with other.rlock(name, wait=servers.LIMIT):
        pass


def test_readers_share_and_the_sole_reader_becomes_the_writer(client, other, name):
    here, there = client.rwlock(name), other.rwlock(name)
    with here.read as reader:
        with there.read:
            with pytest.raises(holdfast.WouldDeadlock):
                here.read.upgrade(reader)
            assert there.write.try_acquire() is None
        here.read.upgrade(reader)
        assert there.read.try_acquire() is None
        here.write.downgrade(reader)
        with there.read:
            pass
    with there.write:
        assert here.read.try_acquire() is None


def test_a_semaphore_gives_permits(client, other, name):
    semaphore = client.semaphore(name, 3)
    with semaphore.permits(2):
        assert semaphore.available() == 1
        with other.semaphore(name, 3):
            assert semaphore.try_acquire() is None
        with pytest.raises(holdfast.Conflict):
            other.semaphore(name, 4).acquire(0)


def test_a_latch_counts_down_once_for_an_id(client, other, name):
    latch, far = client.latch(name), other.latch(name)
    assert latch.count() is None
    with pytest.raises(holdfast.TimedOut):
        latch.wait(0)
    latch.set(2)
    assert far.count_down(id="job") == 1
    assert far.count_down(id="job") == 1
    waiter = threading.Thread(target=latch.wait)
    waiter.start()
    assert far.count_down() == 0
    waiter.join(servers.LIMIT)
    assert not waiter.is_alive()
    assert latch.count() == 0


def test_an_election_has_one_leader(client, other, name):
    here, there = client.election(name, "here"), other.election(name, "there")
    assert there.leader() is None
    with here as term:
        leader = there.leader()
        assert leader.id == "here" and leader.fence == term.fence
        assert there.try_acquire() is None
    with there.acquire(servers.LIMIT):
        assert here.leader().id == "there"


def test_a_multi_lock_takes_all_or_nothing(client, other, name):
    first, second = client.lock(name + "/1"), client.semaphore(name + "/2", 2)
    with other.semaphore(name + "/2", 2):
        assert servers.times_out(lambda seconds: holdfast.multi(first, second.permits(2), wait=seconds).acquire())
        other.lock(name + "/1").acquire(servers.LIMIT).release()
    with holdfast.multi(first, second.permits(2)) as leases:
        assert set(leases.fences) == {name + "/1", name + "/2"}
        assert other.lock(name + "/1").try_acquire() is None
    with pytest.raises(holdfast.Invalid):
        holdfast.multi(first, first)


def test_operators_see_holders_waiters_and_events(client, other, name):
    events = other.watch(name, timeout=servers.LIMIT)
    with client.lock(name, fair=True) as lease:
        waiter = threading.Thread(target=lambda: other.lock(name, fair=True).acquire().release())
        waiter.start()
        assert servers.eventually(lambda: len(client.inspect(name)) == 2)
        holder, waiting = client.inspect(name)
        assert holder.fence == lease.fence and holder.mode == "exclusive" and not holder.waiting
        assert str(os.getpid()) in holder.payload and waiting.waiting
        assert client.names(name)[0].waiters == 1
        assert servers.eventually(lambda: lease.wanted)
    waiter.join()
    assert next(event for event in events if event.kind == "granted").fence == lease.fence
    assert all(check.state in ("ok", "warn", "fail") for check in client.doctor())
    client.ping()


def test_a_client_stays_open_while_its_events_are_read(client, url, name):
    events = holdfast.connect(url).watch(name, timeout=servers.LIMIT)
    with client.lock(name) as lease:
        assert next(event for event in events if event.kind == "granted").fence == lease.fence


def test_a_lock_has_a_payload_and_a_longest_hold(client, other, name):
    lease = client.lock(name, max_hold=1, payload="import of May").acquire()
    assert [holder.payload for holder in other.inspect(name)] in (["import of May"], [])  # or it is over
    assert lease.lost.wait(servers.LIMIT)
    other.lock(name).acquire(servers.LIMIT).release()
    with pytest.raises(holdfast.Invalid):
        client.lock(name, max_hold=0.01)


def test_errors_are_a_tree_with_messages(client, name):
    for wrong in (lambda: client.lock(""), lambda: client.lock(name, ttl=0), lambda: client.lock(name, ttl=0.01),
                  lambda: holdfast.connect("nonsense")):
        with pytest.raises(holdfast.Invalid) as caught:
            wrong()
        assert isinstance(caught.value, ValueError) and str(caught.value).startswith("invalid (")
    with pytest.raises(TypeError):
        client.lock(name, tll=5)
    with pytest.raises(holdfast.Unavailable) as caught:
        holdfast.connect("redis://127.0.0.1:1").lock(name).acquire(0)
    assert isinstance(caught.value, ConnectionError) and caught.value.unsent
    assert issubclass(holdfast.Forked, holdfast.Cancelled) and issubclass(holdfast.Busy, holdfast.NotGranted)


def test_closing_releases_and_answers_waiters(url, other, name):
    client = holdfast.connect(url)
    lock = client.lock(name)
    lease = lock.acquire()
    answers = []

    def wait():
        try:
            lock.acquire()
        except holdfast.Error as problem:
            answers.append(type(problem))
    thread = threading.Thread(target=wait)
    thread.start()
    assert client.close() == []
    assert not lease.valid
    thread.join()
    assert answers == [holdfast.Cancelled]
    with pytest.raises(holdfast.Cancelled):
        lock.acquire(0)
    other.lock(name).acquire(servers.LIMIT).release()
    assert client.close() == []


def test_threads_run_while_one_waits_and_count_exactly(client, name):
    count, lock = [0], client.lock(name)

    def work():
        for _ in range(50):
            with lock:
                count[0] = count[0] + 1
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [800]


def test_a_pickled_client_is_opened_again(client, url, name):
    copy = pickle.loads(pickle.dumps(client))
    with client.lock(name):
        assert copy.lock(name).try_acquire() is None
    copy.close()


@pytest.mark.once
def test_the_default_is_the_file_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with holdfast.connect() as client:
        assert client.engine == "sqlite"
        with client.lock("a") as lease:
            assert math.isinf(lease.valid_for)
    assert (tmp_path / "holdfast" / "holdfast.db").exists()


@pytest.mark.once
def test_the_package_is_typed():
    assert (pathlib.Path(holdfast.__file__).parent / "py.typed").exists()
    undocumented = [each for each in holdfast.__all__ if not getattr(holdfast, each).__doc__]
    assert undocumented == []
