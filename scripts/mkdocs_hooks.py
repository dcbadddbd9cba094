"""For make docs: pages link to files outside of docs/ (figures, examples) as they do on a code host. They become files of
the site, and links to them are made relative to it. Links to headers lead to their pages in the API reference, which is
written here."""
import os
import pathlib
import re
import sys
import tempfile

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import api_reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTSIDE = ["bench/results", "examples", "include/holdfast", "python/examples"]
PAGES = {"README.md": "index.md", "include/holdfast": "api/index.md"}
PAGES |= {f"include/holdfast/{header.name}": f"api/{header.stem}.md" for header in api_reference.HEADERS.glob("*.hpp")}
written = tempfile.TemporaryDirectory()


def on_files(files, config):
    folder = pathlib.Path(written.name) / "api"
    folder.mkdir(exist_ok=True)
    for name, text in api_reference.pages().items():
        (folder / name).write_text(text)
        files.append(File(f"api/{name}", written.name, config["site_dir"], False))
    for folder in OUTSIDE:
        for path in sorted((ROOT / folder).glob("*.*")):
            files.append(File(f"{folder}/{path.name}", str(ROOT), config["site_dir"], False))
    return files


def on_page_markdown(markdown, page, config, files):
    here = pathlib.Path("docs") / page.file.src_path

    def inside(match):
        target, _, anchor = match.group(2).partition("#")
        path = pathlib.Path(os.path.normpath(here.parent / target))
        if re.match(r"[a-z]+:", target) or not target or path.parts[0] == "docs" or page.file.src_path.startswith("api/"):
            return match.group(0)
        moved = os.path.relpath(PAGES.get(str(path), str(path)), pathlib.Path(page.file.src_path).parent)
        return f"{match.group(1)}{moved}{'#' + anchor if anchor else ''})"

    return re.sub(r"(\]\()([^)\s]+)\)", inside, markdown)
