"""For make docs: pages link to files outside of docs/ (figures, examples) as they do on a code host. They become files of
the site, and links to them are made relative to it. Files are found by Git, so that nothing else gets in."""
import os
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTSIDE = ["bench/results", "examples", "include/holdfast"]
PAGES = {"README.md": "index.md", "include/holdfast": "include/holdfast/holdfast.hpp"}


def on_files(files, config):
    for folder in OUTSIDE:
        for path in sorted((ROOT / folder).glob("*.*")):
            files.append(File(f"{folder}/{path.name}", str(ROOT), config["site_dir"], False))
    return files


def on_page_markdown(markdown, page, config, files):
    here = pathlib.Path("docs") / page.file.src_path

    def inside(match):
        target, _, anchor = match.group(2).partition("#")
        path = pathlib.Path(os.path.normpath(here.parent / target))
        if re.match(r"[a-z]+:", target) or not target or path.parts[0] == "docs":
            return match.group(0)
        moved = os.path.relpath(PAGES.get(str(path), str(path)), pathlib.Path(page.file.src_path).parent)
        return f"{match.group(1)}{moved}{'#' + anchor if anchor else ''})"

    return re.sub(r"(\]\()([^)\s]+)\)", inside, markdown)
