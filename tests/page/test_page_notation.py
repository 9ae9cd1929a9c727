"""Code and formulas, in answers and in what they rest on."""

import httpx
import pytest
from playwright.async_api import Page, expect

from domain.text.tables import write_rule
from tests.page.scripted import Script, ask, citation, claim, done, event

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOTES = r"""# Kranich barometer

## Height formula of the Kranich

The Kranich computes the pressure as \(p = p_0 \, e^{-h/H}\) at the height $h$, and costs $5 or $6.

\[
H = \frac{R T}{M g}
\]

## Reading the Kranich

Read the Kranich barometer with this code:

```python
def read(bus: int = 1) -> float:
    return bus / 256  # in hPa
```
"""
MATHS = "[...document.querySelectorAll('math')].map((math) => [math.namespaceURI, math.textContent])"
COLOURED = "[...CSS.highlights].flatMap(([kind, ranges]) => [...ranges].map((range) => `${kind} ${range}`)).sort()"
MATHML = "http://www.w3.org/1998/Math/MathML"


async def test_code_has_colours_and_formulas_are_drawn_where_they_are_cited_too(page: Page, site: str) -> None:
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url.rpartition("/")[2]))
    async with httpx.AsyncClient(base_url=site, timeout=60, params={"workspace": "notes"}) as client:
        added = await client.post("/api/documents", files={"files": ("kranich.md", NOTES.encode())})
        assert added.is_success
    await page.goto(f"{site}/?workspace=notes")
    await page.locator(".starters button").first.wait_for()
    assert not {"temml.js", "highlight.js"} & set(fetched)
    await ask(page, "How is the Kranich barometer read with code?")
    await page.wait_for_function("() => CSS.highlights.get('keyword')?.size")
    assert await page.evaluate(COLOURED) == [
        "comment # in hPa", "keyword def", "keyword float", "keyword int", "keyword return", "number 1", "number 256",
    ]  # fmt: skip
    assert "highlight.js" in fetched
    assert "temml.js" not in fetched
    await page.locator(".answer .marker").click()
    await expect(page.locator(".evidence pre mark").first).to_be_visible()
    # The code in the evidence is coloured like that of the answer, in its mark; with the pane goes its colour.
    await page.wait_for_function("() => CSS.highlights.get('keyword').size === 8")
    await page.keyboard.press("Escape")
    await page.wait_for_function("() => CSS.highlights.get('keyword').size === 4")
    await ask(page, "What is the height formula of the Kranich?")
    answer = page.locator(".answer").last
    await expect(answer.locator("math")).to_have_count(3)
    await expect(answer).to_contain_text("costs $5 or $6.")
    assert await page.evaluate(MATHS) == [[MATHML, "p=p0e−h/H"], [MATHML, "h"], [MATHML, "H=RTMg"]]
    assert await answer.locator("mfrac").count() == 1
    await answer.locator(".marker").last.click()
    await expect(page.locator(".evidence mark math")).to_have_count(1)


async def test_what_is_no_formula_stays_text(page: Page, script: Script) -> None:
    texts = [
        r"From $5 to $6, or $5 (US$) and $HOME/$USER, see \[1\] and \[file_name.md\].",
        r"$\frac$ and $\href{javascript:alert(1)}{x}$ and $\def\a{\a\a}\a$ cannot be drawn.",
        r"$\text{<img src=x onerror=hurt=1>}$ is drawn as it stands.",
    ]
    answer = "\n\n".join(texts)
    await page.goto(await script([event("content", token=answer), done(answer, [citation(1)])]))
    await ask(page, "q")
    await expect(page.locator(".answer math")).to_have_count(1)
    await expect(page.locator(".answer math")).to_have_text("<img src=x onerror=hurt=1>")
    await expect(page.locator(".answer p").first).to_have_text(texts[0].replace("\\", ""))
    await expect(page.locator(".answer p").nth(1)).to_have_text(texts[1], use_inner_text=True)
    assert await page.locator(".answer :is(a, img, [href])").count() == 0


async def test_a_formula_that_is_wider_than_the_window_scrolls_by_itself(page: Page, script: Script) -> None:
    terms = " + ".join(f"x_{{{number}}}" for number in range(40))
    answer = f"It is ${terms}$ here, and $x$."
    await page.set_viewport_size({"width": 390, "height": 844})
    # What a check found of each statement is drawn like the answer.
    checked = {"status": "supported", "claims": [claim(answer), claim("- **Here** is $$y = 2$$ [1]")]}
    await page.goto(await script([event("content", token=answer), done(answer, [citation(1)], verification=checked)]))
    await ask(page, "q")
    await page.locator(".facts summary").click()
    await expect(page.locator(".claims math")).to_have_count(3)
    await expect(page.locator(".claims")).not_to_contain_text("**")
    await expect(page.locator(".claims .formula.display")).to_have_count(2)
    await expect(page.locator(".answer .formula")).to_have_count(2)
    await expect(page.locator(".answer .formula.display")).to_have_count(1)
    assert await page.locator(".turns").evaluate("(turns) => turns.scrollWidth <= turns.clientWidth")
    assert await page.locator(".answer .formula.display").evaluate(
        "(formula) => formula.scrollWidth > formula.clientWidth"
    )


async def test_a_table_of_one_column_is_no_heading(page: Page, script: Script) -> None:
    answer = f"Number of rows:\ncount\n{write_rule(1)}\n3 [1]"
    await page.goto(await script([event("content", token=answer), done(answer, [citation(1)])]))
    await ask(page, "q")
    await expect(page.locator(".answer th")).to_have_text("count")
    await expect(page.locator(".answer td .marker")).to_have_count(1)


async def test_what_is_written_from_right_to_left_is_laid_out_so(page: Page, script: Script) -> None:
    answer = "| الطراز | السعر |\n|---|---:|\n| WS-400 | 1290 |\n\n- شهرا\n\n| Model | Price |\n|---|---|\n| a | b |"
    answer += "\n\n1. Months.\n\n2. شهرا."
    await page.goto(await script([event("content", token=answer), done(answer, [])]))
    await ask(page, "q")
    lefts = await page.locator(".answer th").evaluate_all("(all) => all.map((th) => th.getBoundingClientRect().left)")
    assert lefts[0] > lefts[1], "the first column is the one that is read first"
    assert lefts[2] < lefts[3]
    # The point of a list stands to the right of its text.
    ends = "(items) => items.map((item) => item.parentElement.getBoundingClientRect().right - item.getBoundingClientRect().right)"
    assert await page.locator(".answer li").evaluate_all(ends) == [22.5, 0, 0]
    # One list has one direction, and its items stand at their points, while their words keep their own direction.
    words = """(items) => items.map((item) => {
        const range = document.createRange();
        range.selectNodeContents(item);
        return range.getBoundingClientRect().left - item.parentElement.getBoundingClientRect().left;
    })"""
    assert await page.locator(".answer ol > li > p").evaluate_all(words) == [0, 0]
