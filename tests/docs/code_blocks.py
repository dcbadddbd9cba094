"""Cuts the C++ out of pages, for code_test.cpp: block N of page P becomes P_N.inc in the folder FOLDER, without
its #include lines, which a function cannot have. Usage: code_blocks.py FOLDER PAGE..."""
import pathlib
import re
import sys


def write(file, text):
    """Not if it is the same: files that include it would be compiled again."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in map(pathlib.Path, sys.argv[2:]):
        blocks = re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.M | re.S)
        for number, block in enumerate(blocks, 1):
            lines = [line for line in block.splitlines() if not line.startswith("#include")]
            if page.name == "README.md":
                # What blocks, and after it what a coroutine does, are two functions. The file is one that a
                # test may use.
                waits = [line for line in lines if "co_await" in line]
                if waits:
                    write(folder / "README_coroutine.inc", "\n".join(waits) + "\n")
                lines = [line.replace('"sqlite:/var/lib/shop/locks.db"', "url") for line in lines if line not in waits]
            write(folder / f"{page.stem}_{number}.inc", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
