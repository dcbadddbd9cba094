"""Every code block of README.md and the tutorial is run by a test.

`console` is run by console_test.py, `cpp` by code_test.cpp, `cmake` by scripts/check-install. What is left is run here: commands of
make, as far as `make -n` goes (scripts/fresh runs them in earnest), and the table of the demo, of which figures may differ.

Broken: a block is added that nothing checks, or what it shows is not what a reader sees."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("HOLDFAST_PROGRAM", str(ROOT / "build" / "holdfast"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]


def all_blocks(page):
    """Pairs of a language and what is between the fences."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)


def blocks(page, language):
    return [text for kind, text in all_blocks(page) if kind == language]


def shape(text):
    """Without figures, and without the spaces that align them."""
    plain = re.sub(r"\d[\d.]*( (ms|s|us))?|(?<= )-(?= )", "N", text)
    return [re.sub(r" +", " ", line).strip() for line in plain.strip().splitlines()]


class Blocks(unittest.TestCase):
    def test_every_kind_of_block_has_its_test(self):
        for page in PAGES:
            self.assertLessEqual({kind for kind, _ in all_blocks(page)}, {"console", "cpp", "cmake", ""}, page.name)

    def test_every_block_of_cpp_is_compiled(self):
        source = (ROOT / "tests" / "docs" / "code_test.cpp").read_text()
        for page in PAGES:
            for number in range(1, len(blocks(page, "cpp")) + 1):
                self.assertIn(f"#include <docs/{page.stem}_{number}.inc>", source)

    def test_the_block_of_cmake_is_the_one_that_check_install_builds_with(self):
        self.assertEqual(len(blocks(PAGES[0], "cmake")), 1)
        self.assertIn("/^```cmake$/", (ROOT / "scripts" / "check-install").read_text())

    def test_plain_blocks_are_the_demo_or_commands_of_make(self):
        plain = [block for page in PAGES for block in blocks(page, "")]
        demos = [block for block in plain if "oversold" in block]
        self.assertEqual(len(demos), 1)
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:{folder}/locks.db"
            ran = subprocess.run([PROGRAM, "--url", url, "demo", "flash-sale"], capture_output=True, text=True, cwd=folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(shape(ran.stdout), shape(demos[0]))
        for line in [line for block in plain if block not in demos for line in block.splitlines()]:
            words = line.split("#")[0].split()
            self.assertEqual(words[:1], ["make"], line)
            dry = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(dry.returncode, 0, dry.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
