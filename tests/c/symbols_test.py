"""The shared library of the C interface exports the functions of src/c/symbols.txt, under one symbol version, and
nothing else; the headers declare the same functions.

Broken: a program that was linked before does not start, or one that is linked now depends on what may change."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = sys.argv.pop(1)
LISTED = (ROOT / "src" / "c" / "symbols.txt").read_text().split()


class Symbols(unittest.TestCase):
    def test_the_library_exports_what_is_listed(self):
        said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = sorted(line.split()[-1] for line in said.splitlines() if line.split()[-2] != "A")
        self.assertEqual(exported, [f"{name}@@HOLDFAST_1" for name in LISTED])

    def test_the_headers_declare_what_is_listed(self):
        declared = set()
        for name in ("holdfast.h", "operators.h", "tokens.h"):
            text = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / "holdfast" / name).read_text(), flags=re.S)
            declared |= set(re.findall(r"^[a-z][\w \*]*?\b(hf_\w+)\(", text, re.M))
        self.assertEqual(sorted(declared), LISTED)

    def test_the_list_is_in_order(self):
        self.assertEqual(LISTED, sorted(set(LISTED)))


if __name__ == "__main__":
    unittest.main()
