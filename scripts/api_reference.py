#!/usr/bin/env python3
"""Writes the API reference from the public headers, include/holdfast/*.hpp: one page of Markdown for each, and an index.

Usage: api_reference.py FOLDER. `make docs` calls it through mkdocs_hooks.py.

It relies on how the headers are written: a comment stands before what it describes; structs and enums speak for themselves
and are shown as they are; of a class the public part is shown, without bodies. What names detail:: or core::, and what its
comment says is for this library, is left out."""
import pathlib
import re
import sys

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include" / "holdfast"
# In the order of the index. A header that is missing here is listed last, so that none is forgotten.
GROUPS = {
    "Start here": ["holdfast", "client", "options"],
    "Locks": ["mutex", "recursive_mutex", "shared_mutex", "semaphore", "multi_lock", "election", "latch"],
    "What they give you": ["lease", "fence", "result", "inspection", "observer", "metrics", "clock"],
    "Asynchronous use": ["awaitable", "asio", "move_only_function"],
    "Inside your own database transaction": ["postgresql", "mariadb"],
}
INTERNAL_COMMENT = re.compile(r"For (the (?:primitives|clients) of this library|multi_lock|<holdfast/)")
INTERNAL_NAMESPACES = ("detail", "core", "spi")
TYPE = re.compile(r"(?:template\s*<[^{;]*?>\s*)?(enum class|class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)")


def code_of(line):
    """The line without its // comment."""
    return re.sub(r"\s*//.*", "", line)


def depth(text):
    """How many braces and parentheses stay open."""
    bare = re.sub(r"'.'|\"[^\"]*\"", "", text)
    return sum(bare.count(c) for c in "{(") - sum(bare.count(c) for c in "})")


class Item:
    """A comment and the declarations that it is about."""

    def __init__(self, comment):
        self.comment, self.declarations = comment, []


def items_of(lines):
    """Splits the inside of a namespace or class."""
    items, comment, at = [], [], 0
    current = None
    while at < len(lines):
        line = lines[at].strip()
        if not line or line.startswith("#"):
            comment, current, at = [], None, at + 1
        elif line.startswith("//"):
            comment, current, at = [*comment, line[2:]], None, at + 1
        else:
            end, text = at, ""
            while True:
                text += code_of(lines[end]) + "\n"
                end += 1
                if end == len(lines) or (depth(text) == 0 and re.search(r"[;}:]\s*$", text)
                                         and not re.search(r"\)\s*:\s*$", text)):
                    break
            own = re.search(r"[;}]\s*//( \S.*)", lines[end - 1])  # a comment of its own, after it
            if current is None or own:
                current = Item(comment or ([own.group(1)] if own else []))
                items.append(current)
            current.declarations.append(lines[at:end])
            comment, at = [], end
            current = None if own else current
    return items


def inside(block):
    """The lines between a block's first { and its last }."""
    first = next(number for number, line in enumerate(block) if "{" in code_of(line))
    return block[first + 1:-1]


def public_part(block):
    lines, shown = [], not re.match(r"\s*(template.*)?class\b", " ".join(block[:3]))
    for line in inside(block):
        if re.match(r"\s*(public|private|protected):", line):
            shown = "public" in line
        elif shown:
            lines.append(line)
    return lines


def without_body(block):
    """A declaration without its body and initializers; trailing comments stay where there was no body."""
    text = "\n".join(block)
    level, at = 0, 0
    while at < len(text):
        char = text[at]
        if text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        level += {"(": 1, ")": -1}.get(char, 0)
        if level == 0 and (char == "{" or (char == ":" and "::" not in text[at - 1:at + 2])):
            if char == "{" and text[at:].rstrip().endswith("};"):
                break  # an initializer, as of a constant
            head = re.sub(r"\s*//\s*$", "", text[:at].rstrip(), flags=re.M)
            rest = text[text.rindex("}") + 1:].strip()
            return f"{head};" + (f"  {rest}" if rest else "")
        at += 1
    return re.sub(r"\s+//$", "", text, flags=re.M)


def dedent(text):
    lines = text.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:].rstrip() for line in lines)


def name_of(declaration):
    """The name that a declaration introduces."""
    text = re.sub(r"\[\[.*?\]\]|\bexplicit\(.*?\)", "", code_of(declaration.replace("\n", " ")))
    text = re.sub(r"\brequires\s*\(.*?\)\s*(?=[a-z])", "", re.sub(r"^\s*template\s*<.*?>\s+(?!class|struct)", "", text))
    found = re.search(r"^\s*using (\w+)|constexpr [\w:]+ (\w+) =", text) or re.search(r"\b(operator\s*(?:bool|\(\)|\W+?))\s*\(", text) \
        or re.search(r"(~?\w+)\s*\(", text) or re.search(r"(\w+)\s*(?:=|\{|;)", text)
    return re.sub(r"\s+", " ", next(filter(None, found.groups()))) if found else ""


def is_internal(text):
    return re.search(r"\b(detail|core)::|std::move_only|friend ", text) is not None


def prose(comment):
    """A comment as Markdown. Lines that are indented by three or more are code; "1." begins an item of a list."""
    out, kind = [], ""
    for number, raw in enumerate(comment):
        line = raw.rstrip()
        item = re.match(r"\s+\d+\. ", line) is not None
        if kind == "list" and line.startswith("    "):
            out[-1] += " " + marked(line.strip())
            continue
        goes_on = any(rest.startswith("   ") for rest in comment[number + 1:number + 2])
        now = "list" if item else "code" if line.startswith("   ") or (kind == "code" and not line and goes_on) else "text"
        if now != kind:
            out += ["```"] if kind == "code" else []
            out += ["", "```cpp"] if now == "code" else [""]
            kind = now
        out.append(line[3:] if now == "code" else marked(line.strip()))
    return "\n".join(out + (["```"] if kind == "code" else [])).strip()


CODES = "ok|busy|lost|cancelled|unavailable|denied|conflict|overloaded|unsupported|invalid"
CODE = re.compile(r"co_await \w[\w:.]*(?:\(\w*\)[\w.]*)*"
                  r"|(?:\w+::)*\w+<[\w:]+>(?:::\w+)?(?:\(\))?|(?:\w+::)+~?\w+(?:\(\))?"
                  r"|\b[a-z_]+\(\)(?:\.[a-z_]+\(\w*\))*|\b[a-z]+(?:_[a-z]+)+\b(?:\(\w*\))?"
                  rf"|(?<=answers )(?:{CODES})\b|(?<=throws )(?:{CODES})\b|(?<!is )(?<!was )\b(?:{CODES})(?=: | \(|, `)|\{{\.[^}}]*\}}")


def marked(text):
    """Prose with its code marked as such, and headers linked to their pages."""
    text = re.sub(r"<holdfast/(\w+)\.hpp>", r"[`<holdfast/\1.hpp>`](\1.md)", text)
    parts = re.split(r"(\[?`[^`]*`(?:\]\([^)]*\))?)", text)
    for at in range(0, len(parts), 2):
        parts[at] = CODE.sub(r"`\g<0>`", parts[at])
    return "".join(parts)


def sentence(text):
    """With a capital letter and a full stop, which a comment behind a line lacks."""
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith((".", "```")) else ".")


def copying(name, items):
    """Whether objects of a class can be copied and moved, where it says so."""
    text = " ".join(code_of(" ".join(block)) for item in items for block in item.declarations)
    moves = re.search(rf"\b{name}\({name}&&", text) is not None
    if re.search(rf"\b{name}\(const {name}&[^)]*\) = delete", text) or (moves and f"{name}(const {name}&" not in text):
        return "Movable, not copyable." if moves else "Neither copyable nor movable."
    return "Copyable." if re.search(rf"\b{name}\(const {name}&[^)]*\) = default", text) else ""


def members(block, name, comment):
    items = items_of(public_part(block))
    out = [] if re.search("copied|copyable", " ".join(comment)) else [copying(name, items), ""]
    for item in items:
        if INTERNAL_COMMENT.match(" ".join(item.comment).strip()):
            continue
        shown = [re.sub(r"(?<=;)\s*//.*", "", dedent(without_body(one))) for one in item.declarations]
        shown = [text for text in shown if not is_internal(text) and not re.search(r"= (delete|default);|^(struct|class) \w+;", text)]
        if shown:
            names = list(dict.fromkeys(name_of(text) for text in shown))
            out += [f"### {', '.join(names)}", "```cpp", *shown, "```", sentence(prose(item.comment)), ""]
    return out


def top_level(lines):
    """What is in the namespaces of the public API, as (item, namespace)."""
    at = 0
    while at < len(lines):
        opened = re.match(r"namespace ([\w:]+) \{", lines[at])
        if not opened:
            at += 1
            continue
        end = next(number for number in range(at, len(lines)) if depth("\n".join(map(code_of, lines[at:number + 1]))) == 0)
        space = opened.group(1)
        if space.startswith("holdfast") and not set(space.split("::")) & set(INTERNAL_NAMESPACES):
            for item in items_of(lines[at + 1:end]):
                yield item, space
        at = end + 1


def definition(block, comment):
    """One class, struct, enum, alias or function of a namespace."""
    text = dedent("\n".join(block))
    kind = TYPE.match(text)
    if re.match(r"namespace |static_assert", text) or (kind and "{" not in text):
        return []
    if not kind:
        shown = dedent(without_body(block))
        return [] if is_internal(shown) else ["```cpp", shown, "```"]
    if kind.group(1) != "class":
        return ["```cpp", re.sub(r"\n*\n  friend [^;{]*(;|\{[^}]*\})", "", text), "```"]
    head = re.sub(r"\s*(:\s*public.*)?\{.*", "", text, flags=re.S)
    base = re.search(r":\s*(public [\w:<>, ]+?)\s*\{", text)
    head += f" : {base.group(1)}" if base else ""
    shown = [] if head == f"class {kind.group(2)}" else ["```cpp", head + ";", "```"]
    return [*shown, "", *members(block, kind.group(2), comment)]


def title_of(block):
    text = dedent("\n".join(block))
    kind = TYPE.match(text)
    return f"{kind.group(1).replace('enum class', 'enum')} {kind.group(2)}" if kind else name_of(without_body(block))


def page(header):
    """The reference of one header."""
    lines = header.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("//"))
    out = [f"# {header.stem}.hpp", "", f"`#include <holdfast/{header.name}>` · [source](../include/holdfast/{header.name})", "",
           prose([line[2:] for line in lines[:first]]), ""]
    if header.stem == "holdfast":
        out += [f"- [`<holdfast/{name}.hpp>`]({name}.md)" for name in re.findall(r"#include <holdfast/(\w+)\.hpp>", header.read_text())]
    for item, space in top_level(lines):
        blocks = [block for block in item.declarations if definition(block, item.comment)]
        if not blocks:
            continue
        titles = list(dict.fromkeys(title_of(block) for block in blocks))
        out += [f"## {', '.join(titles)}"] + ([f"In namespace `{space}`.", ""] if space != "holdfast" else [])
        body = [line for block in blocks for line in definition(block, item.comment)]
        text = prose(item.comment)
        # The comment of a class comes before its members, that of a function after its declaration.
        split = body.index("") if titles[0].startswith("class") else len(body)
        out += [*body[:split], "", text, "", *body[split:], ""]
    text = "\n".join(out).replace("```\n```cpp\n", "")  # declarations that share a comment
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def summary(header):
    """The first sentence of a header's comment."""
    first = re.match(r"(?:// ?\S.*\n)+", header.read_text()).group(0)
    text = " ".join(line[2:].strip() for line in first.splitlines())
    return marked(re.split(r"(?<=\.) (?=[A-Z])", text)[0])


def index(headers):
    known = {name for group in GROUPS.values() for name in group}
    groups = dict(GROUPS)
    if others := [header.stem for header in headers if header.stem not in known]:
        groups["Others"] = others
    out = ["# C++ API", "", "Made from the comments of the public headers. How to use them together: [C++ library](../cpp.md).", ""]
    for group, names in groups.items():
        out += [f"## {group}", "", "| header | |", "|---|---|"]
        out += [f"| [`{name}.hpp`]({name}.md) | {summary(HEADERS / f'{name}.hpp')} |" for name in names]
        out.append("")
    return "\n".join(out)


def pages():
    """All pages, by file name."""
    headers = sorted(HEADERS.glob("*.hpp"))
    return {"index.md": index(headers), **{f"{header.stem}.md": page(header) for header in headers}}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
