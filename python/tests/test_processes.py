"""Processes: signals, fork, multiprocessing, the end of the interpreter. Broken: Ctrl-C hangs, a forked child disturbs its
parent, or a program that ends leaves its locks behind."""
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

import holdfast
import servers


def python(code, *arguments, line=None):
    """A process that runs the code; `line`: what its standard input begins with."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.DEVNULL if line is None else
                               subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if line is not None:
        print(line, file=process.stdin, flush=True)
    return process


@pytest.mark.parametrize("call", ["lock(sys.argv[2]).acquire()", "lock(sys.argv[2], wait=3600).acquire()",
                                  "rlock(sys.argv[2]).acquire()", "latch(sys.argv[2] + '/latch').wait()"])
def test_ctrl_c_ends_a_blocking_wait(client, url, name, call):
    with client.lock(name):
        waiter = python("import sys, holdfast; client = holdfast.connect(sys.argv[1]); print('waits', flush=True); client."
                        + call, url, name)
        assert waiter.stdout.readline() == "waits\n"
        if "latch" not in call:
            assert servers.eventually(lambda: len(client.inspect(name)) == 2)

        def ended():
            waiter.send_signal(signal.SIGINT)
            return waiter.poll() is not None
        assert servers.eventually(ended)
        assert "KeyboardInterrupt" in waiter.communicate()[1]
        assert servers.eventually(lambda: len(client.inspect(name)) == 1)


def test_what_is_held_when_the_interpreter_ends_is_released(client, url, name):
    program = python("import sys, threading, holdfast\n"
                     "client = holdfast.connect(sys.argv[1])\n"
                     "lease = client.lock(sys.argv[2], ttl=3600).acquire()\n"
                     "lease.lost.add_callback(print)\n"
                     "kept = client.semaphore(sys.argv[2] + '/s', 1, ttl=3600).acquire()\n"
                     "def wait():\n"
                     "    try: client.lock(sys.argv[2]).acquire()\n"
                     "    except holdfast.Cancelled: pass\n"
                     "threading.Thread(target=wait, daemon=True).start()\n", url, name)
    _, errors = program.communicate(timeout=servers.LIMIT)
    assert (program.returncode, errors) == (0, "")
    client.lock(name).acquire(servers.LIMIT).release()
    client.semaphore(name + "/s", 1).acquire(servers.LIMIT).release()


def in_child(work):
    """Runs `work` in a forked child; whether it ended well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as problem:
            print(repr(problem), file=sys.stderr)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_child_gets_a_clear_error_and_opens_its_own(client, url, name):
    lock = client.lock(name)
    lease = lock.acquire()

    def use():
        for call in (lambda: lock.acquire(0), lambda: lock.acquire(), lease.release, client.ping,
                     lambda: client.lock(name), lambda: client.latch(name)):
            with pytest.raises(holdfast.Forked):
                call()
        assert not lease.valid
        own = holdfast.connect(url)
        assert own.lock(name).try_acquire() is None
        with own.lock(name + "/child"):
            pass
        own.close()
    assert in_child(use)
    assert lease.valid
    lease.release()


def count_up(client, url, name, file, times):
    client = client or holdfast.connect(url)
    for _ in range(times):
        with client.lock(name):
            with open(file) as before:
                number = int(before.read())
            with open(file, "w") as after:
                after.write(str(number + 1))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_count_exactly(client, url, name, tmp_path, method):
    file = tmp_path / "count"
    file.write_text("0")
    context = multiprocessing.get_context(method)
    # A spawned process opens the client that it is given by itself.
    given = client if method == "spawn" else None
    workers = [context.Process(target=count_up, args=(given, url, name, str(file), 25)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert file.read_text() == "100"


def test_a_killed_holder_s_lock_is_free_when_its_ttl_has_passed(client, url, name):
    holder = python("import sys, time, holdfast\n"
                    "lease = holdfast.connect(sys.argv[1]).lock(sys.argv[2], ttl=1).acquire()\n"
                    "print(lease.fence, flush=True)\n"
                    "time.sleep(3600)\n", url, name)
    fence = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    with client.lock(name, wait=servers.LIMIT) as lease:
        assert lease.fence > fence


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_the_thread_for_callbacks_ends_though_a_child_was_forked(url, name):
    threads_before, descriptors_before = threading.active_count(), descriptors()
    client = holdfast.connect(url)
    lease = client.lock(name).acquire()
    lease.lost.add_callback(print)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(1)
    try:
        del client, lease
        assert servers.eventually(lambda: threading.active_count() <= threads_before)
        assert servers.eventually(lambda: descriptors() <= descriptors_before)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_forked_child_closes_no_descriptor_of_its_own_with_a_client_of_its_parent(url, name):
    # As a daemon does: it closes all that it has inherited, and opens what it needs.
    client = holdfast.connect(url)
    lease = client.lock(name).acquire()
    lease.lost.add_callback(print)

    def reuse():
        nonlocal client, lease
        os.closerange(3, 1024)
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
        del client, lease
        gc.collect()
        for each in opened:
            os.fstat(each)
    assert in_child(reuse)
    client.close()
