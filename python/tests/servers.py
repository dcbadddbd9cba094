"""Servers to test against: on free ports, in folders of their own, ended with the process that started them."""
import contextlib
import pathlib
import pwd
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import holdfast

LIMIT = 120  # seconds: a slow machine


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(condition, limit=LIMIT):
    """Waits until the condition holds; whether it did."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def times_out(wait):
    """`wait` takes seconds: their end is what it reports. A short wait may be over before a busy engine has answered
    at all; then a longer one decides. Whether one timed out."""
    for seconds in (0.05, 0.2, 0.8, 3.2, 12.8):
        try:
            wait(seconds)
            return False
        except holdfast.TimedOut:
            return True
        except holdfast.Unavailable:
            pass
    return False


@contextlib.contextmanager
def running(words, answers, stop):
    """A server that runs in the block and answers at its beginning."""
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdout=log, stderr=log)
        try:
            if not eventually(lambda: answers() or server.poll() is not None) or server.poll() is not None:
                log.seek(0)
                raise RuntimeError(f"{words[0]} does not start: {log.read().decode()}")
            yield
        finally:
            server.send_signal(stop)
            server.wait()


@contextlib.contextmanager
def on_free_port(server):
    """A server that runs in the block, on a port that nobody took between looking for it and listening."""
    with contextlib.ExitStack() as stack:
        for left in reversed(range(5)):
            port = free_port()
            try:
                stack.enter_context(server(port))
                break
            except RuntimeError:
                if left == 0:
                    raise
        yield port


@contextlib.contextmanager
def redis():
    with tempfile.TemporaryDirectory() as folder:
        def server(port):
            def answers():
                said = subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, text=True)
                return said.stdout.strip() == "PONG"
            return running(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""],
                           answers, signal.SIGTERM)
        with on_free_port(server) as port:
            yield f"redis://127.0.0.1:{port}"


@contextlib.contextmanager
def postgresql():
    programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))
    with tempfile.TemporaryDirectory() as folder:
        user = []
        if os.geteuid() == 0:  # the server refuses to run as root
            other = pwd.getpwnam("postgres")
            os.chown(folder, other.pw_uid, other.pw_gid)
            user = ["setpriv", "--reuid", other.pw_name, "--regid", str(other.pw_gid), "--clear-groups",
                    "--pdeathsig", "KILL", "--"]
        subprocess.run([*user, programs / "initdb", "--pgdata", f"{folder}/data", "--username", "tester", "--auth", "trust",
                        "--no-sync", "--no-instructions", "--encoding", "UTF8", "--locale", "C"],
                       check=True, stdout=subprocess.DEVNULL)

        def server(port):
            def answers():
                return subprocess.run([programs / "pg_isready", "-h", folder, "-p", str(port)],
                                      stdout=subprocess.DEVNULL).returncode == 0
            settings = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off",
                        "dynamic_shared_memory_type=mmap", "shared_buffers=16MB", "max_connections=200"]
            return running([*user, str(programs / "postgres"), "-D", f"{folder}/data",
                            *(word for each in settings for word in ("-c", each))], answers, signal.SIGQUIT)
        with on_free_port(server) as port:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres?schema=locks"


@contextlib.contextmanager
def embedded():
    folder = tempfile.mkdtemp()
    try:
        yield f"sqlite:{folder}/locks.db"
    finally:
        shutil.rmtree(folder)


ENGINES = {"sqlite": embedded, "redis": redis, "postgresql": postgresql}
