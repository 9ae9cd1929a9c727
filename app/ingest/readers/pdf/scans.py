"""Text recognition (OCR) on pages that are pictures, by rapidocr, which the extra `askgraph[ocr]` brings with models.

It finds pieces of lines anywhere on the page. They are put into reading order here, and become the same runs that
PDFium's characters become, so that rows, paragraphs and headings are found by the same code.
"""

import math
import resource
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pypdfium2

from app.ingest.readers.assembly import squeeze
from app.ingest.readers.pdf.characters import View
from app.ingest.readers.pdf.page import Page, Piece, Run
from domain.documents import Box
from domain.errors import OversizedDocument, ScannedDocument

PACKAGE = "rapidocr"
MAX_SCANS = 500
"""Pages of a file that are recognised, at about 5 s of computing each."""

_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
_SURE = 0.5
"""Score below which a line is noise: rapidocr's own default (`Global.text_score`)."""
_DPI, _MAX_PIXELS = 200, 6_000_000
_DETECTED_SIDE = 1280
"""Longest side in pixels of the picture in which lines are looked for. 960 finds fewer words, 1600 finds no more."""
_PAGE_SECONDS = 20
"""Computing time that a worker gets for each page, on top of the file's."""

_STEP = 1.4
"""Sizes of type nearer than this are taken for the same: recognised lines are as high as their letters happen to be."""
_DASHES = {"一": "—"}
"""The model takes a dash that stands alone for a Chinese numeral."""
_STEEPEST = math.radians(10)


class Scan(NamedTuple):
    """What was recognised on a page."""

    runs: list[Run]
    """Row by row."""
    view: View
    doubtful: int
    """Lines that were left out because they are probably none."""


class TiltedView(View):
    """Maps a page that was scanned at an angle. Runs are measured as if it were straight."""

    def __init__(self, page: pypdfium2.PdfPage, angle: float) -> None:
        """`angle` is the slope of the lines, in radians, clockwise."""
        super().__init__(page)
        self.sine, self.cosine = math.sin(angle), math.cos(angle)

    def measure(self, run: Run) -> Box:
        """Return the box that encloses the run on the page as shown, with how sure its text is."""
        corners = [(x, y) for x in (run.left, run.right) for y in (run.top, run.bottom)]
        xs = [x * self.cosine - y * self.sine for x, y in corners]
        ys = [x * self.sine + y * self.cosine for x, y in corners]
        box = super().measure(Run("", min(xs), min(ys), max(xs), max(ys)))
        return box if run.confidence is None else {**box, "confidence": round(run.confidence, 3)}


def can_recognise() -> bool:
    """Return True if the extra is installed."""
    return find_spec(PACKAGE) is not None


def recognise(page: pypdfium2.PdfPage) -> Scan:
    """Recognise the text of a page. Asks PDFium, so hold its lock.

    Raises `MemoryError`, and `ScannedDocument` where the installed package has no models.
    """
    _raise_limits()
    engine = _load_engine()
    from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

    width, height = page.get_size()
    scale = min(_DPI / 72, math.sqrt(_MAX_PIXELS / (width * height)))
    picture = page.render(scale=scale).to_numpy()[:, :, :3]
    try:
        found = engine(picture, text_score=0.0)
    except ONNXRuntimeError as error:  # the picture is sound and of a bounded size
        raise MemoryError from error
    if found.boxes is None or not found.txts:
        return Scan([], View(page), 0)
    quads = np.asarray(found.boxes, dtype=float) / scale
    angle = _find_angle(quads)
    view = TiltedView(page, angle)
    straight = quads @ np.array([[view.cosine, -view.sine], [view.sine, view.cosine]])
    runs = [
        _make_run(_DASHES.get(text, squeeze(text)), quad, score)
        for quad, text, score in zip(straight, found.txts, found.scores, strict=True)
        if score >= _SURE and text.strip()
    ]
    _even_out(runs)
    return Scan([run for row in _find_rows(runs) for run in row], view, len(found.txts) - len(runs))


def refuse_many(scans: int) -> None:
    """Raise `OversizedDocument` for more scanned pages than are recognised."""
    if scans > MAX_SCANS:
        raise OversizedDocument(f"More than {MAX_SCANS} pages are scans, which is the limit. Split the file.")


def describe_scans(pages: Sequence[Page]) -> tuple[str, ...]:
    """Say of how many scanned pages the text is not there, and how much of it was left out."""
    scans, doubtful = sum(page.is_scan for page in pages), sum(page.doubtful for page in pages)
    notes = []
    if scans and not can_recognise():
        notes.append(f'Pages that are scans and were not read: {scans:,}. To read them: pip install "askgraph[ocr]".')
    if doubtful:
        notes.append(f"Lines on scans that could hardly be recognised and were left out: {doubtful:,}.")
    return tuple(notes)


def _raise_limits() -> None:
    """Let this worker take the memory that models need, and the time for another page."""
    for kind, more in ((resource.RLIMIT_AS, None), (resource.RLIMIT_CPU, _PAGE_SECONDS)):
        soft, hard = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(kind, (hard if more is None else soft + more, hard))


@cache
def _load_engine() -> Any:
    import cv2
    import rapidocr

    folder = Path(rapidocr.__file__).parent / "models"
    # Named by their paths: a model that is named otherwise is downloaded where it is missing.
    paths = {f"{part}.model_path": str(folder / name) for part, name in _MODELS.items()}
    if missing := [path for path in paths.values() if not Path(path).is_file()]:
        raise ScannedDocument(f"Text recognition (OCR) has no model {missing[0]}. Install askgraph[ocr] again.")
    cv2.setNumThreads(1)
    runtime = "EngineConfig.onnxruntime"
    return rapidocr.RapidOCR(
        params={
            **paths,
            "Global.log_level": "error",
            "Global.use_cls": False,  # it turns upright lines of tilted pages upside down
            "Global.max_side_len": math.isqrt(_MAX_PIXELS) * 2,
            "Det.limit_type": "max",
            "Det.limit_side_len": _DETECTED_SIDE,
            "Rec.rec_batch_num": 1,  # six take half as much memory again, and are no faster on one thread
            f"{runtime}.intra_op_num_threads": 1,
            f"{runtime}.inter_op_num_threads": 1,
        }
    )


def _find_angle(quads: Any) -> float:
    """Return the slope of the long lines in radians; 0 where it is no slip of the scanner."""
    along, down = quads[:, 1] - quads[:, 0], quads[:, 3] - quads[:, 0]
    is_long = np.hypot(*along.T) > 8 * np.hypot(*down.T)
    angle = float(np.median(np.arctan2(along[is_long, 1], along[is_long, 0]))) if is_long.any() else 0.0
    return angle if abs(angle) < _STEEPEST else 0.0


def _make_run(text: str, quad: Any, score: float) -> Run:
    (left, top), (right, bottom) = quad.min(axis=0).tolist(), quad.max(axis=0).tolist()
    height = min(math.dist(quad[0], quad[3]), math.dist(quad[0], quad[1]))  # the line may run up or down the page
    return Run(
        text, left, top, right, bottom, [height], [Piece(text, left, top, right, bottom)], confidence=float(score)
    )


def _even_out(runs: Sequence[Run]) -> None:
    """Give lines the height of the page's body, or one that is clearly another."""
    if runs:
        body = median(run.height for run in runs for _ in run.text)
        for run in runs:
            run.heights = [body * _STEP ** round(math.log(max(run.height, 1) / body, _STEP))]


def _find_rows(runs: Iterable[Run]) -> Iterator[list[Run]]:
    row: list[Run] = []
    for run in sorted(runs, key=lambda run: run.top + run.bottom):
        if row and (run.top + run.bottom) / 2 > row[-1].bottom - row[-1].height / 4:
            yield sorted(row, key=lambda piece: piece.left)
            row = []
        row.append(run)
    if row:
        yield sorted(row, key=lambda piece: piece.left)
