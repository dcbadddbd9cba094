"""The peers: how each is fetched by its pinned version, and how it is run.

A peer's program prints "ready", waits for a line, runs, and prints one line of JSON; see java/Peer.java.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
PATIENCE = 120


class NotInstalled(Exception):
    """With the reason, in one line."""


def fetch(command, folder, stamp):
    """Runs once: what was fetched stays."""
    done = folder / stamp
    if done.exists():
        return
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=600)
    except FileNotFoundError as problem:
        raise NotInstalled(f"no {problem.filename}") from None
    except subprocess.SubprocessError as problem:
        words = (getattr(problem, "stderr", "") or str(problem)).strip().splitlines()
        raise NotInstalled(words[-1] if words else "it failed") from None
    done.touch()


def copied(name, folder):
    """The peer's sources, in a folder where things may be built."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for source in filter(pathlib.Path.is_file, (HERE / name).iterdir()):
        target = place / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.write_bytes(source.read_bytes())
            for stamp in place.glob("*.stamp"):
                stamp.unlink()
    return place


class Peer:
    warm_ms = 500
    modes = ("mutex",)
    waits = True  # can take a lock that others have

    def __init__(self, name, engine):
        self.name = name
        self.engine = engine

    def install(self, folder, build):
        raise NotImplementedError

    def command(self, address, words):
        raise NotImplementedError

    def run(self, address, workload, run_ms, prefix):
        words = [str(workload["threads"]), workload["locks"], workload["mode"], "0",
                 str(self.warm_ms), str(run_ms), prefix]
        count = workload["processes"]
        # An own lock is own to one thread of one process.
        started = []
        log = tempfile.TemporaryFile()
        try:
            for number in range(count):
                mine = words[:-1] + [prefix + (f"-p{number}" if words[1] == "own" else "")]
                started.append(subprocess.Popen(self.command(address, mine), stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE, stderr=log, text=True))
            for each in started:
                if each.stdout.readline().strip() != "ready":
                    raise self.failed(log)
            for each in started:
                each.stdin.write("go\n")
                each.stdin.flush()
            answers = [each.communicate(timeout=PATIENCE)[0] for each in started]
            return [json.loads(answer) for answer in answers]
        except (json.JSONDecodeError, subprocess.TimeoutExpired):
            raise self.failed(log) from None
        finally:
            for each in started:
                if each.poll() is None:
                    each.kill()
                each.wait()

    def failed(self, log):
        log.seek(0)
        return RuntimeError(f"{self.name} failed: {log.read().decode(errors='replace')[-500:]}")


class Java(Peer):
    warm_ms = 3000  # for its compiler

    def install(self, folder, build):
        place = copied("java", folder)
        self.jars = place / "jars"
        fetch(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
               f"-DoutputDirectory={self.jars}"], place, "fetched.stamp")
        sources = sorted(str(path) for path in place.glob("*.java"))
        fetch(["javac", "-cp", f"{self.jars}/*", "-d", str(place / "classes"), *sources], place,
              "compiled.stamp")
        self.classes = f"{place / 'classes'}:{self.jars}/*"

    def command(self, address, words):
        return ["java", "-Xmx256m", "-cp", self.classes, "Peer", self.name, address, *words]


class Go(Peer):
    def install(self, folder, build):
        place = copied("go", folder)
        fetch(["go", "build", "-o", "peer", "."], place, "built.stamp")
        self.program = place / "peer"

    def command(self, address, words):
        return [str(self.program), self.name, address, *words]


class Node(Peer):
    def install(self, folder, build):
        self.place = copied("node", folder)
        fetch(["npm", "install", "--no-package-lock", "--no-audit", "--silent"], self.place,
              "fetched.stamp")

    def command(self, address, words):
        return ["node", str(self.place / "peer.js"), address, *words]


class Python(Peer):
    def install(self, folder, build):
        self.place = copied("python", folder)
        fetch([sys.executable, "-m", "venv", "venv"], self.place, "made.stamp")
        fetch(["venv/bin/pip", "install", "-q", "-r", "requirements.txt"], self.place, "fetched.stamp")

    def command(self, address, words):
        return [str(self.place / "venv/bin/python"), str(self.place / "peer.py"), address, *words]


class Bare(Peer):
    """The driver alone: the same work at the server, and nothing of what makes it a lock."""
    waits = False

    def install(self, folder, build):
        self.program = build / "peer_bare"
        if not self.program.exists():
            raise NotInstalled("not built: needs the release preset and Google Benchmark")

    def command(self, address, words):
        kind = {"embedded": "sqlite"}.get(self.engine, self.engine)
        return [str(self.program), kind, address, *words]


class Holdfast(Peer):
    modes = ("mutex", "fair", "rw:90", "semaphore:8")

    def install(self, folder, build):
        self.program = build / "holdfast"

    def run(self, address, workload, run_ms, prefix):
        """`address` is the URL. Its own processes, its own warm-up."""
        command = [str(self.program), "--url", address, "bench", "--json",
                   "--threads", str(workload["threads"]), "--processes", str(workload["processes"]),
                   "--locks", workload["locks"], "--mode", workload["mode"],
                   "--duration", f"{run_ms + self.warm_ms}ms"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise RuntimeError(f"holdfast failed: {done.stderr[-500:]}")
        answer = json.loads(done.stdout)
        return [{"grants": answer["grants_by_thread"],
                 "max_us": answer["acquire_us"]["max"],
                 "histogram": answer["acquire_us"]["histogram"],
                 "seconds": answer["counted_ms"] / 1e3,
                 "hand_off_us": answer["hand_off_us"]}]


class Command(Peer):
    """A command line that takes a lock and runs true, again and again, one after the other."""

    def __init__(self, name, words):
        super().__init__(name, "command")
        self.words = words

    def install(self, folder, build):
        self.build = build

    def run(self, address, workload, run_ms, prefix):
        words = [word.format(holdfast=self.build / "holdfast", folder=address) for word in self.words]
        cells = {}
        grants = longest = 0
        end = time.monotonic() + run_ms / 1e3
        while time.monotonic() < end:
            start = time.monotonic_ns()
            subprocess.run(words, check=True)
            took = (time.monotonic_ns() - start) / 1e3
            cells[round(took, -1)] = cells.get(round(took, -1), 0) + 1
            longest = max(longest, took)
            grants += 1
        return [{"grants": [grants], "max_us": longest, "histogram": list(cells.items())}]


def make_all():
    redisson = Java("redisson", "redis")
    redisson.modes = ("mutex", "fair", "rw:90", "semaphore:8")
    curator = Java("curator", "zookeeper")
    curator.modes = ("mutex", "rw:90")
    all_peers = [redisson, Go("redsync", "redis"), Python("redis-py", "redis"),
                 Node("node-redlock", "redis"), curator, Go("etcd", "etcd")]
    for engine in ("redis", "zookeeper", "etcd", "postgresql", "embedded"):
        all_peers.insert(0, Holdfast("holdfast", engine))
    for engine in ("redis", "postgresql", "embedded"):
        all_peers.append(Bare("bare driver", engine))
    all_peers.append(Command("holdfast", ["{holdfast}", "--url", "sqlite:{folder}/cli.db", "run",
                                          "job", "--", "true"]))
    all_peers.append(Command("flock", ["flock", "{folder}/lock", "true"]))
    all_peers.append(Command("nothing", ["true"]))
    return all_peers
