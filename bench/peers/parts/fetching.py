"""Fetches peers by pinned version, one by one, into a folder for builds."""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
PATIENCE = 600


class NotInstalled(Exception):
    """With the reason, in one line."""


def why(problem):
    """The most useful line of a failed command's output: the last one with "error" in it, or the last one."""
    text = (getattr(problem, "stderr", "") or "") + (getattr(problem, "stdout", "") or "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [str(problem)])[-1][:200]


def is_done(stamp, newer_than=None):
    return stamp.exists() and (newer_than is None or stamp.stat().st_mtime >= newer_than.stat().st_mtime)


def once(command, folder, stamp, newer_than=None, into=None, **how):
    """Runs once: what was fetched stays, unless the file `newer_than` has changed. `into` is emptied first."""
    if is_done(folder / stamp, newer_than):
        return
    if into is not None:
        shutil.rmtree(into, ignore_errors=True)
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE,
                       stdin=subprocess.DEVNULL, **how)
    except FileNotFoundError as problem:
        raise NotInstalled(f"there is no {problem.filename}") from None
    except subprocess.SubprocessError as problem:
        raise NotInstalled(why(problem)) from None
    (folder / stamp).touch()


def copied(name, folder):
    """The sources of a language's peers, below `folder`. Where one has changed that is compiled, or names versions,
    everything is made again."""
    place = folder / name
    for source in filter(pathlib.Path.is_file, (HERE / name).rglob("*")):
        target = place / source.relative_to(HERE / name)
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        for stamp in place.glob("*.stamp") if source.suffix not in (".js", ".py") else ():
            stamp.unlink()
    return place


def java(name, folder):
    """The class path of redisson or curator."""
    place = copied("java", folder)
    jars, classes = place / f"jars-{name}", place / f"classes-{name}"
    once(["mvn", "-q", "-B", "-P", name, "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
          f"-DoutputDirectory={jars}"], place, f"fetched-{name}.stamp", into=jars)
    once(["javac", "-cp", f"{jars}/*", "-d", str(classes), "Peer.java", f"{name.capitalize()}Locks.java"], place,
         f"compiled-{name}.stamp")
    return f"{classes}:{jars}/*"


def go(name, folder):
    """The program."""
    place = copied("go", folder)
    once(["go", "build", "-o", f"peer-{name}", f"./{name}"], place, f"built-{name}.stamp")
    return place / f"peer-{name}"


def node(folder):
    """The folder of the program and its modules."""
    place = copied("node", folder)
    once(["npm", "install", "--no-package-lock", "--no-audit", "--silent"], place, "fetched.stamp")
    return place


def python(name, wanted, folder, newer_than=None, **how):
    """The interpreter, the program, and the folder of this peer's packages: each has its own, so that none conflict."""
    place = copied("python", folder)
    once([sys.executable, "-m", "venv", "venv"], place, "made.stamp")
    packages = place / f"packages-{name}"
    once(["venv/bin/pip", "install", "-q", "--target", str(packages), *wanted], place, f"fetched-{name}.stamp",
         newer_than, packages, **how)
    return place / "venv/bin/python", place / "peer.py", packages
