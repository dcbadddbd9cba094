"""What README.md, CONTRIBUTING.md and docs/ name exists: files, headings, options, variables, targets of make.

Broken: a reader follows a link or types an option that is gone."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = os.environ.get("HOLDFAST_PROGRAM", str(ROOT / "build" / "holdfast"))
# What a user of another library asks first, and words of the answer, which is at most two clicks away from the README.
QUESTIONS = {
    "how do I wait at most a second": ("README.md", "acquire({.wait = 1s})"),
    "what happens if my process is paused": ("docs/tutorial.md", "stop a process that was paused"),
    "can I share locks with my Java services": ("docs/how-to/from-redisson.md", "## Sharing locks with Java services"),
    "which engine should I take": ("docs/choosing.md", "| take it for |"),
    "how fast is it": ("docs/performance.md", "## Compared with other libraries"),
    "how do I know who holds a lock": ("docs/tutorial.md", "$ holdfast show nightly"),
}
COMMANDS = ["run", "elect", "multi", "latch", "ls", "show", "release", "revoke", "watch", "doctor",
            "redis-library", "serve", "demo", "bench", "torture"]


def anchors(page):
    """As GitHub derives them from headings."""
    made = set()
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        made.add(plain.replace(" ", "-"))
    return made


def broken_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"no such file: {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"no such heading: {target}"


def unanswered():
    """Questions whose answer is not where it should be, or more than two clicks away."""
    near = seen = {ROOT / "README.md"}
    for _ in range(2):
        near = {(page.parent / target).resolve() for page in near
                for target in re.findall(r"\]\(([^)\s#]+\.md)", page.read_text())} - seen
        seen = seen | near
    for question, (page, words) in QUESTIONS.items():
        if ROOT / page not in seen:
            yield f"README.md: {page} is more than two clicks away: {question}?"
        elif words not in (ROOT / page).read_text():
            yield f"{page} does not answer: {question}?"


def known_options():
    texts = [subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True).stdout
             for command in [[], *([one] for one in COMMANDS)]]
    return set(re.findall(r"--[a-z][a-z-]+", "".join(texts)))


def lines_of_holdfast(text):
    """What a user types: from the word holdfast to the command that it runs, or to the end of the code."""
    for code in re.findall(r"`([^`\n]+)`", text) + re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        for line in code.split("\n"):
            words = re.match(r"(?:\$ )?(?:\w+=\S+ )*holdfast ((?:(?! -- ).)*)", line)
            if words:
                yield words.group(1).split("#")[0]


def unknown_options(page, known):
    for line in lines_of_holdfast(page.read_text()):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line):
            if option not in known:
                yield f"no such option: {option}"


def unknown_variables(page, source):
    for name in set(re.findall(r"\bHOLDFAST_[A-Z_]+\b", page.read_text())):
        if name not in source:
            yield f"no such variable: {name}"


def unknown_sources(page):
    """`core/hold` in the page about the source: a file or a folder below src/, lab/ or src/stores/."""
    if page.name != "architecture.md":
        return
    for path in set(re.findall(r"`((?:src/|lab/|tests/)?[a-z]+/[a-z_/]+[a-z_])(?:\.\w+)*\*?`", page.read_text())):
        if not any(list(ROOT.glob(f"{folder}/{path}*")) for folder in (".", "src", "src/stores", "src/stores/redis", "lab")):
            yield f"no such file: {path}"


def unknown_targets(page, makefile):
    for code in re.findall(r"`(make [^`\n]+)`", page.read_text()) + \
            re.findall(r"^(make .*)$", page.read_text(), re.M):
        for target in code.split("#")[0].split()[1:]:
            if re.fullmatch(r"[a-z][a-z-]*", target) and not re.search(rf"^{target}:", makefile, re.M):
                yield f"no such target: make {target}"


def all_source():
    folders = ["include", "src", "lab", "tests", "bench", "cmake", "scripts"]
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]
    text = "\n".join(file.read_text(errors="ignore") for file in [*files, ROOT / "CMakeLists.txt", ROOT / "Makefile"])
    # cmake/library.cmake makes an option for each engine.
    return text + "".join(f" HOLDFAST_{name} " for name in re.findall(r"holdfast_engine\((\w+)", text))


def main():
    known, source, makefile = known_options(), all_source(), (ROOT / "Makefile").read_text()
    found = [f"{page.relative_to(ROOT)}: {problem}" for page in PAGES
             for problem in [*broken_links(page), *unknown_options(page, known), *unknown_variables(page, source),
                             *unknown_targets(page, makefile), *unknown_sources(page)]] + list(unanswered())
    print("\n".join(found) or f"{len(PAGES)} pages, nothing is missing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
