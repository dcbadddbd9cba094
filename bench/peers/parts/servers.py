"""Servers to measure against: each on a free loopback port, in a folder of its own, removed afterwards."""
import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("a server did not start")


def wait_for_health(url, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
            if b"true" in answer.read():
                return
        time.sleep(0.05)
    raise RuntimeError("a server did not become healthy")


@contextlib.contextmanager
def running(command, port, **how):
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet, **how)
    try:
        wait_for_port(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def redis(folder):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
               "--dir", str(folder)]
    with running(command, port) as process:
        yield f"127.0.0.1:{port}", f"redis://127.0.0.1:{port}", process.pid


@contextlib.contextmanager
def redis_cluster(folder):
    """Three masters without replicas."""
    ports = [free_port() for _ in range(3)]
    with contextlib.ExitStack() as all_nodes:
        for port in ports:
            (folder / str(port)).mkdir()
            command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                       "--dir", str(folder / str(port)), "--cluster-enabled", "yes",
                       "--cluster-port", str(free_port())]
            all_nodes.enter_context(running(command, port))
        subprocess.run(["redis-cli", "--cluster", "create", *(f"127.0.0.1:{port}" for port in ports),
                        "--cluster-yes"], check=True, capture_output=True)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not all(
                b"cluster_state:ok" in subprocess.run(["redis-cli", "-p", str(port), "CLUSTER", "INFO"],
                                                      check=True, capture_output=True).stdout for port in ports):
            time.sleep(0.1)
        yield f"127.0.0.1:{ports[0]}/cluster", f"redis+cluster://127.0.0.1:{ports[0]}", None


def wait_until_it_serves(port):
    """ZooKeeper listens before it serves, and hangs up until then."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as asks:
            asks.sendall(b"srvr")
            if b"Mode:" in asks.makefile("rb").read():
                return
        time.sleep(0.05)
    raise RuntimeError("ZooKeeper does not serve")


@contextlib.contextmanager
def zookeeper(folder):
    port = free_port()
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"tickTime=2000\ndataDir={folder}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\nmaxClientCnxns=0\nforceSync=no\npreAllocSize=64\n")
    classes = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
    command = ["java", "-Xmx512m", "-cp", classes, "-Dzookeeper.jmx.log4j.disable=true",
               "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings)]
    with running(command, port) as process:
        wait_until_it_serves(port)
        yield f"127.0.0.1:{port}", f"zookeeper://127.0.0.1:{port}", process.pid


@contextlib.contextmanager
def postgresql(folder):
    """Durable commits. Not as root, which it refuses."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    tools = pathlib.Path(found[-1] if found else "/usr/bin")
    as_user = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = folder / "data"
    subprocess.run([tools / "initdb", "-D", data, "-U", "tester", "--auth", "trust", "--no-sync",
                    "--locale", "C", "--encoding", "UTF8"], check=True, capture_output=True,
                   cwd=folder, **as_user)
    port = free_port()
    command = [tools / "postgres", "-D", data, "-p", str(port), "-k", folder,
               "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=500"]
    with running(command, port, cwd=folder, **as_user) as process:
        time.sleep(1)  # it listens before recovery is complete
        yield (f"127.0.0.1:{port}", f"postgresql://tester@127.0.0.1:{port}/postgres", process.pid)


@contextlib.contextmanager
def mariadb(folder):
    """Durable commits. Not as root, which it refuses."""
    as_user = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("mysql")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = folder / "data"
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db",
                    "--auth-root-authentication-method=normal"], check=True, capture_output=True,
                   cwd=folder, **as_user)
    first = folder / "init.sql"
    first.write_text("CREATE USER tester@'%';\nGRANT ALL ON *.* TO tester@'%';\nCREATE DATABASE locks;\n")
    port = free_port()
    command = [shutil.which("mariadbd") or "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}",
               f"--tmpdir={folder}", f"--socket={folder}/socket", f"--port={port}",
               "--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=500", f"--init-file={first}"]
    with running(command, port, cwd=folder, **as_user) as process:
        yield f"127.0.0.1:{port}", f"mariadb://tester@127.0.0.1:{port}/locks", process.pid


@contextlib.contextmanager
def etcd(folder):
    """Without disk syncs, as ZooKeeper here."""
    port, peers = free_port(), free_port()
    command = ["etcd", "--data-dir", str(folder / "data"), "--unsafe-no-fsync", "--logger", "zap",
               "--listen-client-urls", f"http://127.0.0.1:{port}",
               "--advertise-client-urls", f"http://127.0.0.1:{port}",
               "--listen-peer-urls", f"http://127.0.0.1:{peers}",
               "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}",
               "--initial-cluster", f"default=http://127.0.0.1:{peers}"]
    with running(command, port) as process:
        wait_for_health(f"http://127.0.0.1:{port}/health", process)  # it listens before it has a leader
        yield f"127.0.0.1:{port}", f"etcd://127.0.0.1:{port}", process.pid


@contextlib.contextmanager
def embedded(folder):
    yield str(folder), f"sqlite:{folder}/locks.db", None


ENGINES = {"redis": redis, "redis+cluster": redis_cluster, "zookeeper": zookeeper, "postgresql": postgresql, "mariadb": mariadb,
           "etcd": etcd, "embedded": embedded}


@contextlib.contextmanager
def start(engine):
    # So that the server and its folder are removed when we are terminated.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-peers-"))
    folder.chmod(0o711)
    try:
        with ENGINES[engine](folder) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)
