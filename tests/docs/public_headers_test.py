"""What the public headers must keep: everything that answers with a result, a lease or an awaitable warns where
the answer is dropped, and a user's code needs no name of holdfast::spi. The first is tried with the compiler."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADERS = SOURCE / "include" / "holdfast"
COMPILER = os.environ.get("CXX", "c++")

DROPPED = [
    "m.acquire();",
    "m.acquire({.wait = std::chrono::seconds(1)});",
    "m.async_acquire();",
    "m.try_lock();",
    "holdfast::mutex::make(c, \"x\");",
    "held.release();",
    "held.async_release();",
    "held.wait_lost();",
    "holdfast::async_lost(held);",
    "s.acquire();",
    "s.acquire_shared();",
    "s.try_upgrade(held);",
    "s.downgrade(held);",
    "p.acquire();",
    "p.resize(3);",
    "l.set(3);",
    "l.count_down();",
    "l.wait();",
    "e.campaign();",
    "e.leader();",
    "both.acquire();",
    "c.inspect(\"x\");",
    "c.revoke(\"x\", holdfast::revocation::safe);",
    "holdfast::client::open(\"memory:\");",
]

PROGRAM = """#include <holdfast/holdfast.hpp>
void use(holdfast::client& c, holdfast::mutex& m, holdfast::shared_mutex& s, holdfast::semaphore& p, holdfast::latch& l,
         holdfast::election& e, holdfast::multi_lock& both, holdfast::lease& held);
void use(holdfast::client& c, holdfast::mutex& m, holdfast::shared_mutex& s, holdfast::semaphore& p, holdfast::latch& l,
         holdfast::election& e, holdfast::multi_lock& both, holdfast::lease& held) {
  static_cast<void>(c); static_cast<void>(m); static_cast<void>(s); static_cast<void>(p);
  static_cast<void>(l); static_cast<void>(e); static_cast<void>(both); static_cast<void>(held);
%s
}
"""


class PublicHeaders(unittest.TestCase):
    def test_an_answer_that_is_dropped_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "dropped.cpp"
            file.write_text(PROGRAM % "\n".join(DROPPED))
            first = PROGRAM[:PROGRAM.index("%s")].count("\n") + 1
            ran = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-I", str(HEADERS.parent), str(file)],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            warned = {int(line) for line in re.findall(r"dropped\.cpp:(\d+):\d+: warning: ignoring", ran.stderr)}
            silent = [text for number, text in enumerate(DROPPED, first) if number not in warned]
            self.assertEqual(silent, [], ran.stderr)

    def test_no_spi_name_in_what_a_user_writes(self):
        # client::open with a custom store is for authors of stores.
        allowed = re.compile(r"spi::(reactor|store)\b|namespace spi|<holdfast/spi/")
        found = []
        for header in sorted(HEADERS.glob("*.hpp")):
            for number, line in enumerate(header.read_text().splitlines(), 1):
                if "spi" in re.sub(r"//.*", "", line) and not allowed.search(line):
                    found.append(f"{header.name}:{number}: {line.strip()}")
        self.assertEqual(found, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
