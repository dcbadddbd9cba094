"""The peers: what each is fetched with, and how it is run.

A peer's programs are started once for a row and play a round for every line that they get; see java/Peer.java.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import tempfile
import threading
import time

from . import fetching, machine
from .fetching import NotInstalled

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
PATIENCE = 60  # for the start of a row's programs, and for a round
PYPI = {"redis-py": "redis==5.2.1", "python-redis-lock": "python-redis-lock==4.0.1", "pottery": "pottery==3.0.1",
        "kazoo": "kazoo==2.11.0"}

# pid: of the process whose time is the server's; None if there is none.
Server = collections.namedtuple("Server", "address url pid")


def is_counted(workload):
    """Whether grants exclude each other, so that a number that each of them increments has no gap."""
    return workload["locks"] == "same" and not workload["mode"].startswith("semaphore")


class Programs:
    """The processes of one peer in one row."""

    def __init__(self, peer, commands, environment):
        self.peer = peer
        self.log = tempfile.TemporaryFile()
        self.all = []
        self.commands, self.environment = commands, environment

    def __enter__(self):
        with self.patience():
            for command in self.commands:
                self.all.append(subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, env=self.environment,
                                                 stdout=subprocess.PIPE, stderr=self.log, text=True))
            for each in self.all:
                if each.stdout.readline().strip() != "ready":
                    self.kill()
                    raise self.failed()
        return self

    def __exit__(self, *_):
        self.kill()
        self.log.close()

    def kill(self):
        for each in self.all:
            each.kill()
        for each in self.all:
            each.stdin.close()
            each.stdout.close()
            each.wait()

    @contextlib.contextmanager
    def patience(self, more=0):
        """Whatever takes longer is killed, which ends the wait for it."""
        alarm = threading.Timer(PATIENCE + more, lambda: [each.kill() for each in self.all])
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()

    def play(self, warm_ms, run_ms):
        with self.patience((warm_ms + run_ms) / 1e3):
            for each in self.all:
                with contextlib.suppress(BrokenPipeError):
                    each.stdin.write(f"{warm_ms} {run_ms}\n")
                    each.stdin.flush()
            lines = [each.stdout.readline() for each in self.all]
        if not all(lines):
            raise self.failed()
        return [json.loads(line) for line in lines]

    def failed(self):
        self.log.seek(0)
        said = self.log.read().decode(errors="replace").strip().splitlines()
        errors = [line for line in said if "rror" in line or "xception" in line]
        return RuntimeError((errors or said or [f"no answer within {PATIENCE} s"])[-1][:300])


class Peer:
    first_warm_ms = 600   # before the first round of a row
    warm_ms = 150         # before the others
    start_seconds = 0.3   # approximate, per process: to estimate how long everything takes
    modes = ("mutex",)
    waits = True          # can wait for a lock that others hold
    takes_url = False

    def __init__(self, name, engine, modes=None):
        self.name = name
        self.engine = engine
        self.modes = modes or self.modes

    def install(self, folder, build):
        """Fetches what is missing; raises NotInstalled if it cannot."""
        raise NotImplementedError

    def versions(self):
        return {}

    def command(self, address, words):
        raise NotImplementedError

    def environment(self):
        return None

    def fits(self, workload):
        return (self.engine == workload["engine"] and workload["mode"] in self.modes
                and (self.waits or workload["locks"] == "own"))

    @contextlib.contextmanager
    def started(self, server, workload, count):
        """Yields a function that plays a round, given the warm-up and its length in ms. `count`: a file."""
        commands = []
        for number in range(workload["processes"]):
            name = f"{self.name}-{workload['name']}" + (f"-p{number}" if workload["locks"] == "own" else "")
            words = [workload["threads"], workload["locks"], workload["mode"], 0, name,
                     count if is_counted(workload) else "-"]
            commands.append(self.command(server.url if self.takes_url else server.address, words))
        with Programs(self, commands, self.environment()) as programs:
            clients = [each.pid for each in programs.all]

            def play(warm_ms, run_ms):
                written = read_count(count)
                used = machine.processor_time(*clients), machine.processor_time(server.pid)
                answers = programs.play(warm_ms, run_ms)
                now = machine.processor_time(*clients), machine.processor_time(server.pid)
                check_count(answers, read_count(count) - written)
                pairs = max(sum(answer["pairs"] for answer in answers), 1)
                return {"answers": answers, "seconds": run_ms / 1e3, "client_cpu_us": (now[0] - used[0]) / pairs,
                        "server_cpu_us": (now[1] - used[1]) / pairs if server.pid else None}
            yield play


def read_count(path):
    return struct.unpack("<q", path.read_bytes())[0]


def check_count(answers, written):
    counted = sum(answer["counted"] for answer in answers)
    if counted != written:
        raise RuntimeError(f"two held the lock at once: of {counted} steps under it {counted - written} are lost")


class Java(Peer):
    first_warm_ms = 4000  # for its compiler
    start_seconds = 1.5

    def install(self, folder, build):
        self.classes = fetching.java(self.name.split("-")[0], folder)

    def versions(self):
        name = self.name.split("-")[0]
        return {name: re.search(rf"<{name}.version>([^<]+)", (HERE / "java/pom.xml").read_text())[1]}

    def command(self, address, words):
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", self.classes, "Peer", self.name, address, *words]


class Go(Peer):
    def install(self, folder, build):
        self.program = fetching.go(self.name, folder)

    def versions(self):
        module = {"redsync": "redsync/v4", "etcd": "client/v3"}.get(self.name, self.name)
        found = re.search(rf"{module} v(\S+)", (HERE / "go/go.mod").read_text())[1]
        return {"etcd client" if self.name == "etcd" else self.name: found}

    def command(self, address, words):
        return [self.program, address, *words]


class Node(Peer):
    def install(self, folder, build):
        self.place = fetching.node(folder)

    def versions(self):
        return {"node-redlock": json.loads((HERE / "node/package.json").read_text())["dependencies"]["redlock"]}

    def command(self, address, words):
        return ["node", self.place / "peer.js", address, *words]


class Python(Peer):
    def install(self, folder, build):
        wanted = [PYPI[self.name]] + ([PYPI["redis-py"]] if self.engine == "redis" else [])
        self.interpreter, self.program, self.packages = fetching.python(self.name, wanted, folder)

    def versions(self):
        return {self.name: PYPI[self.name].split("==")[1]}

    def environment(self):
        return os.environ | {"PYTHONPATH": str(self.packages)}

    def command(self, address, words):
        return [self.interpreter, self.program, self.name, address, *words]


class HoldfastPython(Python):
    """Our own package, around the C library of the build."""
    takes_url = True

    def install(self, folder, build):
        library = build / "libholdfast_c.so"
        if not library.exists():
            raise NotInstalled("not built: the target holdfast_c of the release preset")
        self.interpreter, self.program, self.packages = fetching.python(
            "holdfast-python", [str(ROOT / "python")], folder, newer_than=library,
            env=os.environ | {"HOLDFAST_C_LIBRARY": str(library.resolve())})

    def versions(self):
        return {}

    def command(self, address, words):
        return [self.interpreter, self.program, "holdfast", address, *words]


class Plain(Peer):
    """A plain client of the engine, in C++: the engine's own locks, or (Bare) the driver alone."""
    kinds = {"pg_advisory_lock": "advisory", "GET_LOCK": "get-lock"}

    def install(self, folder, build):
        self.program = build / "peer_bare"
        if not self.program.exists():
            raise NotInstalled("not built: needs the release preset and Google Benchmark")

    def command(self, address, words):
        return [self.program, self.kinds.get(self.name, self.engine), address, *words]


class Bare(Plain):
    """The same work at the server as a lock, but without exclusion."""
    kinds = {}
    waits = False

    def command(self, address, words):
        return [self.program, {"embedded": "sqlite"}.get(self.engine, self.engine), address, *words]


class Holdfast(Peer):
    """One client per process, in C++."""
    modes = ("mutex", "fair", "rw:90", "semaphore:8")
    takes_url = True
    options = ""

    def install(self, folder, build):
        self.program = build / "peer_holdfast"
        if not self.program.exists():
            raise NotInstalled("not built: needs the release preset and Google Benchmark")

    def command(self, address, words):
        return [self.program, address + self.options, *words]


class HoldfastSession(Holdfast):
    """Session locks, like the engine's own."""
    modes = ("mutex", "rw:90")
    options = "?strategy=session"


class HoldfastStd(Holdfast):
    """lock() and unlock(), as std::scoped_lock calls them."""
    modes = ("mutex",)

    def fits(self, workload):
        return super().fits(workload) and workload["processes"] == 1

    def command(self, address, words):
        return [self.program, "--std", address, *words]


class HoldfastCoroutines(Holdfast):
    """Coroutines instead of threads, as goroutines are in Go and loops in Node."""
    modes = ("mutex",)

    def fits(self, workload):
        return super().fits(workload) and workload["threads"] > 1

    def command(self, address, words):
        return [self.program, "--coroutines", address, *words]


class Command(Peer):
    """A command line that takes a lock and runs true, repeatedly, one run after another."""
    modes = ("command",)
    warm_ms = first_warm_ms = 0

    def __init__(self, name, engine, words):
        super().__init__(name, engine)
        self.words = words

    def install(self, folder, build):
        self.build = build
        if "{" not in self.words[0] and machine.first_match(["which", self.words[0]], r"(.+)") is None:
            raise NotInstalled(f"there is no {self.words[0]}")

    @contextlib.contextmanager
    def started(self, server, workload, count):
        folder = server.address if self.engine == "command" else ""
        words = [word.format(holdfast=self.build / "holdfast", folder=folder, address=server.address, url=server.url)
                 for word in self.words]
        yield lambda _, run_ms: self.play(words, server, run_ms)

    @staticmethod
    def play(words, server, run_ms):
        cells = collections.Counter()
        longest = 0
        used = children_time(), machine.processor_time(server.pid)
        end = time.monotonic() + run_ms / 1e3
        start = time.monotonic()
        while time.monotonic() < end:
            asked = time.monotonic_ns()
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip()[-300:])
            took = (time.monotonic_ns() - asked) / 1e3
            cells[round(took, -1)] += 1
            longest = max(longest, took)
        count = sum(cells.values())
        seconds = time.monotonic() - start
        return {"answers": [{"grants": [count], "max_us": longest, "histogram": list(cells.items())}],
                "seconds": seconds, "client_cpu_us": (children_time() - used[0]) / count,
                "server_cpu_us": (machine.processor_time(server.pid) - used[1]) / count if server.pid else None}


def children_time():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (use.ru_utime + use.ru_stime) * 1e6


def make_all():
    ours = [Holdfast("holdfast", engine)
            for engine in ("redis", "zookeeper", "etcd", "postgresql", "mariadb", "embedded")]
    ours += [HoldfastSession("holdfast-session", engine) for engine in ("postgresql", "mariadb")]
    ours += [HoldfastStd("holdfast-std", "redis"), HoldfastCoroutines("holdfast-coroutines", "redis")]
    ours += [HoldfastPython("holdfast-python", engine) for engine in ("redis", "embedded")]
    ours.append(HoldfastPython("holdfast", "redis", ("coroutines",)))  # in the row of Python alone
    locks = [Java("redisson", "redis", ("mutex", "fair", "rw:90", "semaphore:8")), Java("redisson-fenced", "redis"),
             Go("redsync", "redis"), Go("redislock", "redis"), Python("redis-py", "redis", ("mutex", "coroutines")),
             Python("python-redis-lock", "redis"), Python("pottery", "redis"), Node("node-redlock", "redis"),
             # Their locks are always fair.
             Java("curator", "zookeeper", ("mutex", "fair", "rw:90", "semaphore:8")),
             Python("kazoo", "zookeeper", ("mutex", "fair", "rw:90", "semaphore:8")),
             Go("etcd", "etcd", ("mutex", "fair")),
             Plain("pg_advisory_lock", "postgresql", ("mutex", "rw:90")), Plain("GET_LOCK", "mariadb")]
    bare = [Bare("bare driver", engine) for engine in ("redis", "postgresql", "mariadb", "embedded")]
    commands = [
        Command("holdfast", "command", ["{holdfast}", "--url", "sqlite:{folder}/cli.db", "run", "job", "--", "true"]),
        Command("flock", "command", ["flock", "{folder}/lock", "true"]), Command("nothing", "command", ["true"]),
        Command("holdfast", "etcd", ["{holdfast}", "--url", "{url}", "run", "job", "--", "true"]),
        Command("etcdctl lock", "etcd", ["etcdctl", "--endpoints={address}", "lock", "theirs", "true"])]
    return ours + locks + bare + commands
