"""Signal handlers that raise, as that of Ctrl-C. Broken: a lock is held, or waited for, by a call that has already ended."""
import signal
import sys
import threading

import pytest

import holdfast
import servers


class Raised(Exception):
    """By the handler."""


@pytest.fixture
def raising():
    """SIGALRM raises in the main thread."""
    def handler(*_):
        raise Raised
    before = signal.signal(signal.SIGALRM, handler)
    yield
    signal.signal(signal.SIGALRM, before)


def test_a_wait_that_a_signal_ends_leaves_the_queue_though_its_exception_is_kept(client, other, name, raising):
    def interrupt():
        servers.eventually(lambda: len(client.inspect(name)) == 2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
    with client.lock(name, fair=True):
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            other.lock(name, fair=True).acquire()
        except Raised as kept:
            assert servers.eventually(lambda: len(client.inspect(name)) == 1)
            assert kept.__traceback__
        thread.join()


class Interrupted:
    """The C interface, with a signal that arrives during each call of one name."""

    def __init__(self, lib, name):
        self._lib, self._name = lib, name

    def __getattr__(self, name):
        found = getattr(self._lib, name)
        if name != self._name:
            return found

        def call(*arguments):
            answer = found(*arguments)
            signal.raise_signal(signal.SIGALRM)
            return answer
        return call


@pytest.mark.parametrize("module, during", [
    ("locks", "hf_acquire"), ("locks", "hf_acquire_start"), ("lease", "hf_lease_fence")])
def test_a_signal_in_the_middle_of_an_acquisition_leaves_nothing_behind(client, other, name, raising, monkeypatch,
                                                                        module, during):
    lock, part = client.lock(name), getattr(holdfast, module)
    lock._contended = during == "hf_acquire_start"  # no try first
    monkeypatch.setattr(part, "lib", Interrupted(part.lib, during))
    with pytest.raises(Raised) as kept:
        lock.acquire()
    monkeypatch.undo()
    with other.lock(name, wait=servers.LIMIT):
        assert kept.traceback


def test_a_signal_in_the_middle_of_an_adoption_leaves_nothing_behind(client, other, name, raising, monkeypatch):
    token = client.lock(name, ttl=600).acquire().detach()
    monkeypatch.setattr(holdfast.client, "lib", Interrupted(holdfast.client.lib, "hf_call_lease"))
    with pytest.raises(Raised) as kept:
        other.adopt(token)
    monkeypatch.undo()
    with client.lock(name, wait=servers.LIMIT):
        assert kept.traceback


def test_a_generator_that_ends_in_the_middle_of_with_disturbs_no_other_block(client, name):
    # As one that is collected, or is closed by a signal handler: here after each instruction.
    lock, left = client.semaphore(name, 9), 0

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != holdfast.locks.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                generator.close()
        return trace

    def entered():
        with lock:
            yield

    step = 0
    while left <= 0:
        step, generator = step + 1, entered()
        next(generator)
        left = step
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with lock:
                sys.settrace(before)
                assert lock.available() == 7 + (left <= 0)
                sys.settrace(trace)
        finally:
            sys.settrace(before)
        generator.close()
        assert lock.available() == 9


def test_a_signal_in_the_middle_of_adding_a_callback_leaves_the_others_alone(client, other, name, raising, monkeypatch):
    first, second = client.lock(name).acquire(), client.lock(name + "/second").acquire()
    called = threading.Event()
    monkeypatch.setattr(holdfast.lease, "lib", Interrupted(holdfast.lease.lib, "hf_lost_start"))
    with pytest.raises(Raised) as kept:
        first.lost.add_callback(lambda _: None)
    monkeypatch.undo()
    other.revoke(name, force=True)
    assert first.lost.wait(servers.LIMIT)
    second.lost.add_callback(lambda _: called.set())
    other.revoke(name + "/second", force=True)
    assert called.wait(servers.LIMIT)
    assert kept.traceback


@pytest.mark.parametrize("meanwhile", ["close", "add"])
def test_a_client_may_be_closed_and_asked_for_callbacks_in_the_middle_of_adding_one(url, name, monkeypatch, meanwhile):
    # By a signal handler, or by what is collected.
    client, threads_before = holdfast.connect(url), threading.active_count()
    lease = client.lock(name).acquire()

    class Interrupted(holdfast.lease.Watcher):
        def __init__(self, of):
            monkeypatch.undo()
            if meanwhile == "add":
                lease.lost.add_callback(print)
            else:
                client.close()
            super().__init__(of)

    monkeypatch.setattr(holdfast.client, "Watcher", Interrupted)
    adding = threading.Thread(target=lease.lost.add_callback, args=(print,), daemon=True)
    adding.start()
    adding.join(servers.LIMIT)
    assert not adding.is_alive()
    client.close()
    assert servers.eventually(lambda: threading.active_count() <= threads_before)
