"""Rows of cells that may span others, as HTML and pandoc have them."""

from itertools import pairwise

from app.ingest.readers.assembly import Assembly

_WIDEST_SPAN = 40


class Rows:
    """The rows of a table as they are read. A cell that spans rows is repeated in each, so that each can be read alone,
    and so is one that spans columns which have headers."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.headers = 0
        self.caption = ""
        self._labels: dict[int, str] = {}
        """What rows of one cell say about those that follow, by the number of these."""
        self._row: list[str] = []
        self._spanned: dict[int, tuple[int, str]] = {}
        """By column: the number of rows still to come, and the cell's text."""
        self._cells = 0
        self._is_header = False

    def open_row(self, *, is_header: bool) -> None:
        """Begin a row. `is_header` is true for one that the table says is part of its header."""
        self._row = []
        self._cells = 0
        self._is_header = is_header
        self._are_headers = True

    def add_cell(self, text: str, rows: int, columns: int, *, is_header: bool) -> None:
        """Add a cell that spans so many rows and columns, at most as many as people write by hand; 0 rows are all that
        are left of the group."""
        rows, columns = min(rows or _WIDEST_SPAN, _WIDEST_SPAN), min(max(columns, 1), _WIDEST_SPAN)
        self._repeat()
        self._cells += 1
        self._are_headers &= is_header
        is_remark = bool(self.rows) and columns >= len(self.rows[0])  # on the whole table
        # The names of groups of columns, and what stands below the header.
        is_repeated = not is_remark and (is_header or (0 < self.headers <= len(self.rows) and not self._is_header))
        for column in range(columns):
            said = text if is_repeated or not column else ""
            if rows > 1:
                self._spanned[len(self._row)] = rows - 1, said
            self._row.append(said)

    def add_loose(self, text: str) -> None:
        """Add text that stands in no cell."""
        if text:
            self._row.append(text)

    def close_row(self) -> None:
        """End a row. One cell across the first row is the caption."""
        self._repeat()
        if self._cells == 1 < len(self._row) and len(self._row) >= len(next(iter(self.rows), ())):
            label, self._row = self._row[0], []
            if not self.rows and not self.caption:
                self.caption = label
            elif label:
                self._labels[len(self.rows)] = ": ".join(filter(None, (self._labels.get(len(self.rows)), label)))
        is_again = 0 < self.headers == len(self.rows) and self._row == self.rows[-1]  # the header overleaf
        if any(self._row) and not is_again:
            if (self._is_header or self._are_headers) and self.headers == len(self.rows):
                self.headers += 1
            self.rows.append(self._row)
        self._row = []

    def end_group(self) -> None:
        """End the rows of a header or a body, which no cell goes beyond."""
        self._spanned.clear()

    def add_to(self, assembly: Assembly, headers: int, caption: str = "") -> None:
        """Append the table; below a row of one cell as another one with the same header and this as caption."""
        assembly.end_label()
        assembly.add_paragraph(caption or self.caption)
        if self.rows and (last := self._labels.pop(len(self.rows), "")):  # a remark on the whole
            self.rows.append([last, *[""] * (len(self.rows[0]) - 1)])
        labels = {headers: ""} | {max(row, headers): label for row, label in self._labels.items()}
        for start, end in pairwise([*labels, len(self.rows)]):
            rows = [*self.rows[:headers], *self.rows[start:end]]
            assembly.add_table(rows if start < end or len(labels) == 1 else [], headers=headers, caption=labels[start])

    def _repeat(self) -> None:
        while (spanned := self._spanned.pop(len(self._row), None)) is not None:
            rows, text = spanned
            if rows > 1:
                self._spanned[len(self._row)] = rows - 1, text
            self._row.append(text)
            self._cells += 1
