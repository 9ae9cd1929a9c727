"""Makes the binary files of the sample library: ``python -m tests.ingest.sample_library [FOLDER]``.

The same bytes every time, so that a run changes nothing unless the text below was changed.
"""

import io
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from docx import Document
from fpdf import FPDF
from fpdf.enums import XPos, YPos

from app.samples import FOLDER

MANUAL = "ws-400-manual.pdf"
INCIDENT = "incident-li-2025-03.docx"

_DATE = datetime(2025, 9, 1, 12, 0, tzinfo=UTC)

_MANUAL: list[tuple[str, str | list[tuple[str, ...]]]] = [
    ("h1", "1 About the station"),
    (
        "p",
        "The WS-400 is an automatic weather station (AWS) for permanent outdoor use. It measures air temperature, "
        "relative humidity, air pressure, wind speed and direction, rain and global radiation. The data acquisition "
        "unit (DAU) in the grey housing stores the measurements and sends them to the cloud service Skylark.",
    ),
    (
        "p",
        "The station is meant for professional users. It must not be the only source of weather information for "
        "decisions about the safety of people.",
    ),
    ("h2", "1.1 What is in the box"),
    (
        "p",
        "The box holds the sensor head THP-3, the ultrasonic wind sensor UW-2, the rain gauge TBRG-8, the DAU with "
        "battery, four ground anchors, a hexagon key of 5 mm and this manual. The mast is ordered separately.",
    ),
    ("h1", "2 Technical data"),
    (
        "table",
        [
            ("Quantity", "Range", "Accuracy", "Resolution"),
            ("Temperature", "-40 to +60 °C", "0.15 K", "0.01 K"),
            ("Relative humidity", "0 to 100 %", "1.5 %", "0.1 %"),
            ("Air pressure", "500 to 1,100 hPa", "0.3 hPa", "0.01 hPa"),
            ("Wind speed", "0 to 65 m/s", "0.2 m/s", "0.1 m/s"),
            ("Wind direction", "0 to 359 degrees", "2 degrees", "1 degree"),
            ("Rain", "0 to 400 mm/h", "3 %", "0.1 mm"),
            ("Global radiation", "0 to 1,500 W/m²", "5 %", "1 W/m²"),
        ],
    ),
    (
        "p",
        "The station weighs 7.8 kg without the mast. Its housing has the protection class IP66. It works from -40 to "
        "+60 °C; below -25 °C the display of the DAU is switched off.",
    ),
    ("h2", "2.1 Power"),
    (
        "p",
        "The battery is a lithium iron phosphate battery of 12.8 V and 20 Ah. Fully charged, it runs the station for "
        "21 days without sun. The solar panel needs at least 40 W; south of the 50th parallel 20 W are enough. Below "
        "11.6 V the station saves energy and sends once an hour only. Below 10.8 V it switches itself off.",
    ),
    ("h2", "2.2 Communication"),
    (
        "p",
        "Measurements are sent every 5 minutes over the mobile network (LTE-M), LoRaWAN or satellite. Without a "
        "connection, the memory card keeps one-minute data for 90 days. On site, connect to the wireless network "
        "WS400-SETUP; its first password is printed inside the door of the DAU.",
    ),
    ("h1", "3 Installation"),
    ("h2", "3.1 Choosing the place"),
    (
        "p",
        "Keep a distance of at least ten times the height of any obstacle. The sensor head stands 2 m above short "
        "grass, the wind sensor 10 m above the ground. Where a mast of 10 m is not possible, set the height in "
        "Settings, Site, so that the wind speed can be corrected.",
    ),
    ("h2", "3.2 Mounting"),
    (
        "p",
        "1. Drive in the four ground anchors, 60 cm deep. 2. Raise the mast and tighten its bolts with 25 Nm. 3. Turn "
        "the wind sensor until the red mark points to geographic north; a deviation of more than 3 degrees must be "
        "corrected. 4. Level the rain gauge with the bubble level in its base. 5. Connect the ground wire with a cross "
        "section of at least 16 mm² before any other cable.",
    ),
    (
        "p",
        "Two people are needed to raise the mast. Do not work on the mast in a thunderstorm or at wind speeds above "
        "8 m/s.",
    ),
    ("h2", "3.3 First start"),
    (
        "p",
        "Press the button in the DAU for three seconds. The status light turns yellow, and green after about 4 "
        "minutes. Enter the activation code from the delivery note in Skylark. The first measurements appear after "
        "ten minutes.",
    ),
    ("h1", "4 Maintenance"),
    (
        "table",
        [
            ("Part", "What to do", "How often"),
            ("Rain gauge", "Remove leaves, rinse the buckets", "every month"),
            ("Solar panel", "Wipe with a soft cloth", "every 3 months"),
            ("Filter cap of the THP-3", "Replace", "every 2 years"),
            ("Battery", "Replace", "every 8 years"),
            ("Radiation shield", "Clean with water, no solvent", "every 6 months"),
            ("Barometer", "Calibrate in the laboratory", "every 12 months"),
        ],
    ),
    (
        "p",
        "Stations with the cup anemometer CA-1 instead of the ultrasonic wind sensor have moving parts: the "
        "anemometer bearings must be replaced every 4 years, near the sea every 2 years. Turn the cups by hand once a "
        "year; if they grind, replace the bearings at once.",
    ),
    ("h1", "5 Troubleshooting"),
    (
        "table",
        [
            ("Status light", "Meaning", "Remedy"),
            ("green, steady", "All is well", "none"),
            ("yellow, blinking", "No connection", "Check antenna and SIM card"),
            ("red, blinking once", "Sensor missing", "Check the cable of the sensor"),
            ("red, blinking twice", "Battery below 11.6 V", "Clean the solar panel"),
            ("red, steady", "Fault E-31: memory card", "Replace the card (industrial, 32 GB)"),
            ("off", "Battery below 10.8 V", "Charge or replace the battery"),
        ],
    ),
    (
        "p",
        "To return to the factory settings, hold the reset button for 30 seconds until the light blinks white. "
        "Measurements on the memory card are kept. Support: service@lindenhof.example, phone +49 5550 100 222, Monday "
        "to Friday from 8:00 to 17:00.",
    ),
    ("h1", "6 Disposal"),
    (
        "p",
        "The station contains a lithium battery and does not belong in household waste. Lindenhof takes old stations "
        "back free of charge; ask for an RMA number with the reason 'disposal'.",
    ),
]


def make_manual() -> bytes:
    """The product manual: three pages or more, with headings, tables and a running footer."""
    pdf = _Manual(format="A4")
    pdf.set_creation_date(_DATE)
    pdf.set_title("WS-400 Weather Station: Operating Manual")
    pdf.set_author("Lindenhof Instruments")
    pdf.set_margins(25, 25)
    pdf.set_auto_page_break(True, margin=30)
    pdf.add_page()
    pdf.set_font("helvetica", "B", 24)
    pdf.cell(0, 14, "WS-400 Weather Station", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.set_font("helvetica", "", 14)
    pdf.cell(0, 10, "Operating manual, edition 7, for firmware 4.2", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(6)
    for kind, content in _MANUAL:
        if kind == "table":
            assert isinstance(content, list)
            _add_table(pdf, content)
        else:
            assert isinstance(content, str)
            _add_text(pdf, kind, content)
    return bytes(pdf.output())


class _Manual(FPDF):
    def footer(self) -> None:
        self.set_y(-20)
        self.set_font("helvetica", "", 8)
        self.cell(0, 5, f"Lindenhof Instruments, WS-400 manual, page {self.page_no()}")


def _add_text(pdf: FPDF, kind: str, text: str) -> None:
    size, style = {"h1": (18, "B"), "h2": (14, "B"), "p": (11, "")}[kind]
    if kind != "p":
        if pdf.will_page_break(40):
            pdf.add_page()
        pdf.ln(4)
    pdf.set_font("helvetica", style, size)
    pdf.multi_cell(0, size * 0.5, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(3)


def _add_table(pdf: FPDF, rows: list[tuple[str, ...]]) -> None:
    pdf.set_font("helvetica", "", 10)
    widths = (26, 37, 37) if len(rows[0]) == 3 else (28, 28, 22, 22)
    with pdf.table(line_height=6, text_align="LEFT", col_widths=widths) as table:
        for row in rows:
            table.row(row)
    pdf.ln(4)


def make_incident_report() -> bytes:
    """The incident report as a Word file."""
    document = Document()
    document.core_properties.title = "Incident LI-2025-03: Barometer Drift"
    document.core_properties.author = "Lindenhof Instruments"
    document.core_properties.created = document.core_properties.modified = _DATE.replace(tzinfo=None)
    document.add_paragraph("Incident LI-2025-03: Barometer Drift", style="Title")
    document.add_paragraph("Report of 11 April 2025 by Jonas Feld, head of engineering. Severity 2. Status: closed.")
    document.add_heading("Summary", level=1)
    document.add_paragraph(
        "From 17 February to 27 March 2025, weather stations of the type WS-400 with the firmware 4.1.0 or 4.1.1 "
        "reported air pressure that was wrong by up to 2.4 hPa at temperatures below -5 °C. 412 stations of 57 "
        "customers were concerned, among them nine airfields. Nobody was hurt, and no flight was diverted."
    )
    document.add_heading("Timeline", level=1)
    table = document.add_table(rows=1, cols=2)
    table.style = "Table Grid"
    for cell, text in zip(table.rows[0].cells, ("Time", "Event"), strict=True):
        cell.text = text
    for when, what in (
        ("17 February 2025", "Firmware 4.1.0 is released."),
        ("12 March 2025, 7:40", "The airfield Nordhalben reports that QNH differs by 1.9 hPa from the tower's."),
        ("13 March 2025", "Customer support takes a faulty cable for the cause and sends a new one."),
        ("24 March 2025, 9:15", "Two more airfields complain. The ticket is raised to severity 2."),
        ("25 March 2025, 16:30", "Ines Kowalczyk reproduces the drift in the climate chamber at -20 °C."),
        ("26 March 2025, 11:00", "Firmware 4.1.0 and 4.1.1 are withdrawn; all customers are informed."),
        ("27 March 2025, 18:20", "Firmware 4.1.2 with the correction is released."),
        ("4 April 2025", "398 of the 412 stations run 4.1.2; the remaining 14 are updated on site by 10 April."),
    ):
        cells = table.add_row().cells
        cells[0].text, cells[1].text = when, what
    document.add_heading("Root cause", level=1)
    document.add_paragraph(
        "While the driver of the barometer was rewritten for firmware 4.1.0, the temperature compensation was changed "
        "to read its coefficients from the table of the sensor type. The coefficients of the individual sensor, which "
        "the laboratory stores during calibration, were ignored. The test bench runs at 23 °C, where both agree."
    )
    document.add_heading("What went well", level=2)
    document.add_paragraph("The rollback plan worked: withdrawing the release took 35 minutes.")
    document.add_heading("What went badly", level=2)
    document.add_paragraph("The first report waited twelve days before an engineer saw it.")
    document.add_heading("Cost", level=1)
    document.add_paragraph(
        "Site visits, new certificates and credits to customers cost 86,300 euros. The airfields received a credit of "
        "three months of their Skylark subscription."
    )
    document.add_heading("Actions", level=1)
    for action in (
        "Add a pressure measurement at -20 °C to the calibration procedure CAL-12 (Ines Kowalczyk, done 2 May 2025).",
        "Run every firmware release for 48 hours in the climate chamber (Jonas Feld, done 30 June 2025).",
        "Pass complaints of airfields to engineering within one working day (Priya Nandakumar, done 15 April 2025).",
        "Release firmware to 5 % of the stations first, and wait for seven days (Jonas Feld, due 31 October 2025).",
    ):
        document.add_paragraph(action, style="List Bullet")
    buffer = io.BytesIO()
    document.save(buffer)
    return _fix_dates(buffer.getvalue())


def _fix_dates(archive: bytes) -> bytes:
    """The archive with one date on all its parts; python-docx writes the time of day."""
    fixed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = zipfile.ZipInfo(name, date_time=_DATE.timetuple()[:6])
            part.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(part, old.read(name))
    return fixed.getvalue()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    (folder / MANUAL).write_bytes(make_manual())
    (folder / INCIDENT).write_bytes(make_incident_report())


if __name__ == "__main__":
    main()
