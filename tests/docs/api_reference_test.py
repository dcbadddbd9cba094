"""The API reference has a page for every public header, with every public name, and nothing internal.

Broken: a reader looks a call up and finds nothing, or finds what is not for them."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import api_reference  # noqa: E402

HEADERS = sorted((ROOT / "include" / "holdfast").glob("*.hpp"))


def types_of(text):
    """Found in a simpler way than in the script: by the beginning of a line."""
    text = re.sub(r"namespace detail \{.*?\n\}  // namespace detail|namespace \w+ \{\n(class|struct) \w+;\n\}", "", text, flags=re.S)
    return re.findall(r"^(?:enum class|class|struct) (?:\[\[nodiscard\]\] )?(\w+)\b(?!::)[^;{]*\{", text, re.M)


class ApiReference(unittest.TestCase):
    pages = api_reference.pages()

    def test_every_header_has_a_page_that_the_index_lists(self):
        for header in HEADERS:
            with self.subTest(header.name):
                self.assertIn(f"# {header.name}", self.pages[f"{header.stem}.md"])
                self.assertEqual(self.pages["index.md"].count(f"]({header.stem}.md)"), 1 + (header.stem == "asio"))
        self.assertEqual(len(self.pages), len(HEADERS) + 1)

    def test_every_type_has_a_heading(self):
        count = 0
        for header in HEADERS:
            for name in types_of(header.read_text()):
                count += 1
                self.assertRegex(self.pages[f"{header.stem}.md"], rf"(?m)^## (class|struct|enum) {name}$", header.name)
        self.assertGreater(count, 30)

    def test_calls_come_with_their_declaration_and_comment(self):
        page = self.pages["lease.md"]
        self.assertIn("### wait_lost\n```cpp\n[[nodiscard]] result<void> wait_lost(duration wait = forever, "
                      "std::stop_token token = {}) const;\n```\nBlocks until", page)
        self.assertIn("### lock, try_lock, try_lock_for, try_lock_until, unlock\n", self.pages["mutex.md"])
        self.assertIn("std::chrono::duration<Rep, Period>& wait);\n", self.pages["mutex.md"])
        self.assertIn("## forever\n", self.pages["clock.md"])
        self.assertIn("## lock_in_transaction\n", self.pages["postgresql.md"])

    def test_nothing_of_the_inside_is_shown(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.assertNotRegex(page, r"\b(detail|core)::|\binside\(|private:|&lt;")
                self.assertEqual(page.count("\n```") % 2, 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
