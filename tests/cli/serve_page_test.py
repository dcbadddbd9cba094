"""The live page in a real browser: what an operator does with it, and what a hostile name must not do.

Broken: the page shows nothing, shows it as markup, or revokes without a question."""
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
from browser import Browser  # noqa: E402
from served import Served  # noqa: E402

TOKEN = "0123456789abcdef0123456789abcdef"
HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_HOLDER = "<script>alert(2)</script>"
ROWS = "[...document.querySelectorAll('.row:not([hidden])')].sort((a, b) => a.index - b.index)"
NAMES = ROWS + ".map((row) => row.nameText.textContent)"
TITLE = "document.querySelector('#panel:not([hidden]) h2')?.textContent"


def check(fine, what):
    if not fine:
        raise SystemExit(f"not so: {what}")


def open_with_token(page, served):
    page.resize(1280, 860)
    page.open(served.address)
    page.wait("document.querySelector('#ask').open", "the token is asked for")
    page.click("#ask input")
    page.type(TOKEN)
    page.press("Enter")
    page.wait("document.querySelector('#link').classList.contains('live')", "live")
    page.wait("document.querySelector('#empty').textContent.includes('Nothing is held')")


def holders_appear(page, served):
    nightly = served.hold("run", "nightly")
    page.wait(f"{NAMES}.includes('nightly')", "a new holder appears by itself")
    served.hold("elect", "--id", HOSTILE_HOLDER, HOSTILE)
    served.hold("run", "another")
    page.wait(f"{NAMES}.length === 3")
    served.hold("run", "nightly")  # waits
    page.wait(f"{ROWS}.some((row) => row.nameText.textContent === 'nightly' && row.waitersText.textContent === '1')")
    return nightly


def hostile_text_stays_text(page):
    page.wait(f"{ROWS}.some((row) => row.holderText.textContent === {HOSTILE_HOLDER!r})", "the holder's own words")
    check(page.run(f"{NAMES}.includes({HOSTILE!r})"), "the name is text")
    check(page.run("document.querySelectorAll('img').length") == 0, "no element came from a name")
    check(page.run("document.querySelectorAll('script').length") == 1, "no script came from a payload")


def sorts_and_filters(page):
    page.click("[data-sort=name]")
    page.wait(f"{NAMES}.join() === [{HOSTILE!r}, 'another', 'nightly'].join()", "by name")
    page.click("[data-sort=name]")
    page.wait(f"{NAMES}[0] === 'nightly'", "the other way round")
    page.press("/")
    page.type("anoth")
    page.wait(f"{NAMES}.join() === 'another'", "filtered")
    page.press("Escape")
    page.wait(f"{NAMES}.length === 3", "and all again")
    page.click("[data-kind=contended]")
    page.wait(f"{NAMES}.join() === 'nightly'", "what is waited for")
    page.click("[data-kind=all]")
    page.wait(f"{NAMES}.length === 3")


def opens_a_timeline(page):
    page.click("#row-0")
    page.wait(f"{TITLE} === 'nightly'", "the panel is that of the line")
    page.wait("document.querySelectorAll('#panel .piece.hold.lasts').length === 1", "the hold is drawn")
    page.wait("document.querySelectorAll('#panel .waiter').length === 1", "the waiter is listed")
    page.press("Escape")
    page.wait("document.querySelector('#panel').hidden")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait(f"{TITLE} && {TITLE} !== 'nightly'", "by keyboard, the next one")
    page.press("Escape")


def shows_no_other_lock_s_answer(page):
    """Another lock is chosen while the answer about the first is on its way: it must not be shown as the second's."""
    page.run("""(() => {
      const send = window.fetch;
      window.asked = [];
      window.fetch = (path, options) => !path.startsWith("api/locks/") ? send(path, options)
        : new Promise((resolve) => asked.push({path, answer: () => resolve(send(path, options))}));
      window.answerAll = () => { window.fetch = send; for (const one of asked) one.answer(); };
    })()""")
    page.click("#row-1")
    page.wait("asked.length === 1 && asked[0].path.includes('/another?')", "asked about the first")
    page.click("#row-0")
    page.wait(f"{TITLE} === 'nightly'")
    page.run("asked[0].answer()")
    page.wait("asked.length === 2 && asked[1].path.includes('/nightly?')", "then about the second")
    page.run("drawPanel()")
    check(page.run("panel.status.textContent") == "…", "nothing is known of the second yet")
    check(page.run("document.querySelector('#revoke')") is None, "and nothing can be done to it")
    page.run("answerAll()")
    page.wait("panel.status.textContent === 'Held by 1 holder.'", "its own answer is shown")
    page.press("Escape")


def revokes(page, nightly):
    page.click("#row-0")
    page.click("#revoke")
    page.wait("document.querySelector('#ask').innerText.includes('not renewed any more')", "it says what it does")
    page.wait("document.querySelector('#ask').innerText.includes('nightly')", "and to what")
    check(nightly.poll() is None, "nothing is done before the answer")
    page.click("#ask .danger")
    check(nightly.wait(120) == 123, "the holder has lost it")
    page.wait("document.querySelectorAll('#panel .waiter').length === 0 && "
              "document.querySelectorAll('#panel .piece.hold.lasts').length === 1", "the waiter holds it now")
    page.press("Escape")


def fits_a_phone(page):
    page.resize(390, 800, dark=True)
    page.wait("document.documentElement.scrollWidth <= 390", "no wider than the screen")
    page.click("#row-0")
    page.wait("document.querySelector('#panel').getBoundingClientRect().width === 390", "the panel fills it")
    page.wait("document.documentElement.scrollWidth <= 390")


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "token").write_text(TOKEN + "\n")
        with Served(folder, "--allow-revoke", "--token-file", "token") as served, Browser(folder + "/profile") as page:
            open_with_token(page, served)
            nightly = holders_appear(page, served)
            hostile_text_stays_text(page)
            sorts_and_filters(page)
            opens_a_timeline(page)
            shows_no_other_lock_s_answer(page)
            revokes(page, nightly)
            fits_a_phone(page)
            check(not page.complaints, page.complaints)
            check(not page.dialogs, page.dialogs)
            foreign = [one for one in page.requests if not one.startswith((served.address, "data:", "about:"))]
            check(not foreign, foreign)
            check(all(TOKEN not in one for one in page.requests), "the token is in no address")
    print("the page shows, sorts, filters, opens and revokes")


if __name__ == "__main__":
    main()
