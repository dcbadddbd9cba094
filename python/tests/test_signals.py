"""Signal handlers that raise, as that of Ctrl-C. Broken: a lock is held, or waited for, by a call that has already ended."""
import signal
import threading

import pytest

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
