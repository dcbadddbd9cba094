"""Runs what a page shows in its console blocks, in order and in one shell, and compares the output.

Usage: console_test.py PAGE. "$ " begins a command, "> " goes on with it; the lines behind it are its output, in which "…"
stands for anything. A command in the background is waited for until it holds its lock.

Broken: a reader types what the page shows, and sees something else."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(os.environ["HOLDFAST_PROGRAM"]).resolve()
LIMIT = 180
MARK = "--end-of-command--"


class Shell:
    """One bash for the whole page, in a home of its own."""

    def __init__(self, home):
        environment = {"HOME": home, "PATH": f"{PROGRAM.parent}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                       "TMPDIR": home}
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, cwd=home, env=environment, text=True,
                                     start_new_session=True)

    def run(self, command):
        # The status is passed to the next command, which may ask for it.
        self.bash.stdin.write(f"{command}\n__status=$?; echo {MARK}; (exit $__status)\n")
        self.bash.stdin.flush()
        lines = []
        while (line := self.bash.stdout.readline()):
            if line.rstrip("\n").endswith(MARK):
                rest = line.rstrip("\n")[:-len(MARK)]
                return lines + ([rest] if rest else [])
            # What bash prints about a killed job comes whenever bash notices.
            if not re.match(r"bash: line \d+: +\d+ Killed", line):
                lines.append(line.rstrip("\n"))
        raise RuntimeError("the shell ended")

    def wait_until_held(self, command):
        words = shlex.split(command.rstrip("& "))
        name = words[words.index("--") - 1]
        wanted = f"holdfast show {shlex.quote(name)} --json"
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if '"holders":[{' in "".join(self.run(wanted)):
                return
            time.sleep(0.05)
        raise RuntimeError(f"nobody holds {name}")

    def end(self):
        try:
            os.killpg(self.bash.pid, 9)
        except ProcessLookupError:
            pass
        self.bash.wait()


def steps(page):
    """Pairs of a command and the output that the page shows."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S):
        command, shown = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, shown
                command, shown = line[2:], []
            elif line.startswith("> ") or line == ">":
                command += "\n" + line[2:]
            else:
                shown.append(line)
        if command is not None:
            yield command, shown


def matches(printed, shown):
    """A line of only "…" stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)?" if line == "…" else
                      r"[^\n]*".join(re.sub(r"(\\ )+", r"[ ]+", re.escape(part)) for part in line.split("…")) + r"\n"
                      for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed), re.S) is not None


def main():
    page = pathlib.Path(sys.argv[1])
    count = 0
    with tempfile.TemporaryDirectory() as home:
        # The surroundings of the README's examples.
        script = pathlib.Path(home) / "backup.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        shell = Shell(home)
        try:
            for command, shown in steps(page):
                count += 1
                printed = shell.run(command)
                if command.rstrip().endswith("&"):
                    shell.wait_until_held(command)
                if not matches(printed, shown):
                    print(f"{page.name}: $ {command}\nprinted:\n" + "\n".join(printed) + "\nshown:\n" + "\n".join(shown))
                    return 1
        finally:
            shell.end()
    print(f"{page.name}: {count} commands")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
