"""`make docs` builds the site without a warning, and every link and picture of it leads to something that is there.

Broken: a reader of the site clicks and finds nothing."""
import html.parser
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def broken(site):
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        for target in page.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc or file.name == "404.html":
                continue
            found = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
            if found.is_dir():
                found /= "index.html"
            if not found.exists():
                yield f"{file.relative_to(site)}: nothing at {target}"
            elif parts.fragment and found in pages and urllib.parse.unquote(parts.fragment) not in pages[found].ids:
                yield f"{file.relative_to(site)}: no such heading: {target}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder).resolve() / "site"
        built = subprocess.run(["mkdocs", "build", "-q", "--strict", "-d", str(site)], cwd=ROOT, capture_output=True, text=True)
        problems = [line for line in (built.stdout + built.stderr).splitlines() if line.strip()]
        problems += list(broken(site)) if not built.returncode else ["the site was not built"]
        count = len(list(site.rglob("*.html")))
    print("\n".join(problems) or f"{count} pages, all links resolve")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
