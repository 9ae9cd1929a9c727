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
_WELL, _FAIR, _SAMPLE = 0.9, 0.7, 8
"""Ratings from which a page is taken for upright, and for read, and the lines by which it is rated. Chosen: of 33
pages, upright ones have 0.94 and more, unless they are blurred, and those that are upside down 0.82 and less."""
_TALL = 1.5
"""Height of a line as a share of its width from which rapidocr takes it to run up or down the page."""
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
    is_poor: bool = False
    """True where it is hardly read, whichever way up."""


class TiltedView(View):
    """Maps a page that was scanned at an angle. Runs are measured as if it were straight."""

    def __init__(self, page: pypdfium2.PdfPage, turned: int, angle: float) -> None:
        """`angle` is the slope of the lines, in radians, clockwise."""
        super().__init__(page, turned)
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


def recognise(page: pypdfium2.PdfPage, turned: int = 0) -> Scan:
    """Recognise the text of a page that is turned by so many degrees clockwise already, and turn it further where its
    words run another way. Asks PDFium, so hold its lock.

    Raises `MemoryError`, and `ScannedDocument` where the installed package has no models.
    """
    _load_engine()
    from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

    try:
        reading = _Reading(page)
        turn, rating = reading.find_turn()
        if turn:
            page.set_rotation((page.get_rotation() + turn) % 360)
            reading = _Reading(page)
        reading.read_upwards()
    except ONNXRuntimeError as error:  # the picture is sound and of a bounded size
        raise MemoryError from error
    view = TiltedView(page, (turned + turn) % 360, _find_angle(reading.quads) if reading.texts else 0.0)
    straight = reading.quads / reading.scale @ np.array([[view.cosine, -view.sine], [view.sine, view.cosine]])
    # Where nothing reads well, noise has high scores, too.
    sure = reading.scores if rating >= _SURE else reading.rate(reading.texts, reading.scores)
    runs = [
        _make_run(_DASHES.get(text, squeeze(text)), quad, score)
        for quad, text, score, least in zip(straight, reading.texts, reading.scores, sure, strict=True)
        if least >= _SURE and text.strip()
    ]
    _even_out(runs)
    return Scan([run for row in _find_rows(runs) for run in row], view, len(reading.texts) - len(runs), rating < _FAIR)


class _Reading:
    """The lines that are found on a page as it is turned, in pixels of its picture."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        _raise_limits()
        self._engine = _load_engine()
        width, height = page.get_size()
        self.scale = min(_DPI / 72, math.sqrt(_MAX_PIXELS / (width * height)))
        self._picture = page.render(scale=self.scale).to_numpy()[:, :, :3]
        found = self._engine(self._picture, text_score=0.0)
        is_empty = found.boxes is None or not found.txts
        self.quads = np.asarray([] if is_empty else found.boxes, dtype=float).reshape(-1, 4, 2)
        self.texts = [] if is_empty else list(found.txts)
        self.scores = np.array([] if is_empty else found.scores, dtype=float)
        wide, high = (np.linalg.norm(self.quads[:, end] - self.quads[:, 0], axis=1) for end in (1, 3))
        self._slant = high / wide
        self._lengths = np.maximum(self._slant, 1 / self._slant)

    def find_turn(self) -> tuple[int, float]:
        """Return by how many degrees clockwise the page is to be turned for most of its words to run from left to
        right, and how well these are read. If not at all, it stays as it is."""
        if not self.texts:
            return 0, 1.0
        is_tall, weights = self._slant > 1, self._lengths - 1  # of a square, nobody sees how it runs
        is_sideways = weights[is_tall].sum() > weights[~is_tall].sum()
        longest = np.argsort(-self._lengths)
        sample = longest[is_tall[longest] == is_sideways][:_SAMPLE]
        seen = self._judge(sample, [self.texts[place] for place in sample], self.scores[sample])
        over = 0.0 if seen >= _WELL else self._judge(sample, *self._read_over(sample))
        turn = (270 * int(is_sideways) + 180 * (over > seen)) % 360
        return turn if max(seen, over) >= _SURE else 0, max(seen, over)

    def read_upwards(self) -> None:
        """Read lines that run up the page: rapidocr reads those that stand as if they ran down."""
        doubted = np.flatnonzero((self._slant >= _TALL) & (self.scores < _WELL))
        for place, text, score in zip(doubted, *self._read_over(doubted), strict=True):
            if score > self.scores[place]:
                self.texts[place], self.scores[place] = text, score

    def rate(self, texts: Sequence[str], scores: Any, places: Any = slice(None)) -> Any:
        """Return how well lines are read: noise has fewer letters than a line has room for squares."""
        letters = np.array([len("".join(text.split())) for text in texts])
        return scores * np.minimum(1, letters / self._lengths[places])

    def _judge(self, places: Any, texts: Sequence[str], scores: Any) -> float:
        return float(np.average(self.rate(texts, scores, places), weights=self._lengths[places]))

    def _read_over(self, places: Any) -> tuple[Sequence[str], Any]:
        """Read lines upside down."""
        if not len(places):
            return [], np.array([])
        crops = self._engine.crop_text_regions(self._picture, self.quads[places].astype(np.float32))
        found = self._engine.recognize_txt([crop[::-1, ::-1] for crop in crops])
        return found.txts, np.array(found.scores)


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
    if poor := [f"{number:,}" for number, page in enumerate(pages, start=1) if page.is_poor]:
        notes.append(f"Scanned pages that could hardly be read, whichever way up: {', '.join(poor)}.")
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
