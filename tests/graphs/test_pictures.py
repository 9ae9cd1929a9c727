"""Pictures of cited pages, from the file to the model's wire, to the tape, and to a replay without a call."""

import base64
import io
import logging

import pytest
from fpdf import FPDF
from PIL import Image

from app.ingest.page_picture import draw_figures
from app.settings import Settings
from domain.profile import Profile
from tests.asking import JUDGE, LARGE, ask, vary
from tests.wire.openai import OpenAIServer
from tests.workbench.test_tapes import read_tape, rehearse, replay, serve

QUESTION = "How much rain fell on the Wendelstein?"
SEES: Profile = vary(generate={"pictures": 2})


def make_report() -> bytes:
    """A page of text, and one with a chart whose figures stand nowhere else."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    pdf.add_page()
    pdf.multi_cell(0, text="The rain on the Wendelstein is measured at dawn by two gauges of the Falke. " * 20)
    pdf.add_page()
    pdf.multi_cell(0, text="Figure 1 shows how much rain fell on the Wendelstein in each month of the year. " * 3)
    pdf.image(Image.radial_gradient("L").resize((600, 400)), w=120)
    return bytes(pdf.output())


def make_form() -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=12)
    pdf.multi_cell(0, text="Application for a rain gauge, to be filled in by whoever wants one. " * 10)
    for row in range(10):
        pdf.rect(20, 100 + row * 12, 60, 10)
        pdf.rect(90, 100 + row * 12, 60, 10)
    return bytes(pdf.output())


def read_pictures(server: OpenAIServer, *models: str) -> list[list[bytes]]:
    """The pictures in each request to one of these models."""
    return [
        [
            base64.b64decode(part["image_url"]["url"].removeprefix("data:image/jpeg;base64,"))
            for message in body["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]
        for body in server.requests
        if body["model"] in (models or (LARGE,)) and "<source" in str(body["messages"])
    ]


def test_only_pages_that_show_more_than_text_are_drawn() -> None:
    report = draw_figures(make_report(), [1, 2, 99], 5)
    assert list(report) == [2]
    picture = Image.open(io.BytesIO(report[2].jpeg))
    assert picture.format == "JPEG"
    assert max(picture.size) == 1024
    assert picture.size == (report[2].width, report[2].height)
    assert list(draw_figures(make_form(), [1], 5)) == [1]


async def test_the_model_sees_the_page_with_the_figure_and_a_replay_asks_nobody(settings: Settings) -> None:
    async with serve(settings) as (services, server, serving):
        await services.library.ingestion.add("default", "report.pdf", make_report())
        blind = await ask(services, QUESTION)
        done = await ask(services, QUESTION, profile=SEES)
        [none, [seen]] = read_pictures(server)
        prompt = [part["text"] for part in server.requests[-1]["messages"][-1]["content"] if part["type"] == "text"]
        tape = await read_tape(services, done["run_id"])
        [drawn] = [call for call in tape.calls if call.method == "draw"]
        # A change runs on with what was drawn, although the tape does not have it.
        changes = {"profile.generate.tone": "merry"}
        changed, _ = await replay(services, done["run_id"], tape="fill", changes=changes)
        again = read_pictures(server)[-1]
        for document in await services.library.documents.list("default"):
            await services.library.ingestion.delete("default", document.id)
        await serving.aclose()
        assert await rehearse(services, done["run_id"]) == []
    assert none == []
    assert blind["answer"]
    assert max(Image.open(io.BytesIO(seen)).size) == 1024
    assert "page 2 of [" in prompt[0]
    assert [picture["page"] for picture in drawn.reply] == [2]
    assert base64.b64encode(seen)[:200].decode() not in str(tape)
    assert changed["type"] == "done"
    assert again == [seen]


async def test_the_judge_sees_what_the_writer_saw(settings: Settings) -> None:
    async with serve(settings) as (services, server, _):
        await services.library.ingestion.add("default", "report.pdf", make_report())
        server.behaviour.model_replies = {LARGE: "Rain fell on the Wendelstein in all months of that year [1]."}
        await ask(services, QUESTION, profile=vary("thorough", generate={"pictures": 2}))
    [[written], [judged]] = read_pictures(server, LARGE, JUDGE)
    assert judged == written


async def test_a_model_that_refuses_pictures_is_asked_without_and_one_notice_says_so(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(settings, sees=False) as (services, server, _):
        await services.library.ingestion.add("default", "report.pdf", make_report())
        with caplog.at_level(logging.WARNING, "askgraph.models"):
            first = await ask(services, QUESTION, profile=SEES)
            await ask(services, QUESTION + " And when?", profile=SEES)
    assert first["degraded"] == []
    assert [len(pictures) for pictures in read_pictures(server)] == [1, 0, 0]
    assert sum("refuses pictures" in record.message for record in caplog.records) == 1
