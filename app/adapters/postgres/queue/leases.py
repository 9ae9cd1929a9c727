"""Leases: who executes a run or reads a file, and how long nobody else may.

A row that is taken has `attempt`, the number of times that this has happened, and `claimed_until`. Its holder extends
the claim every `BEAT_SECONDS`; once it has run out, whoever comes first takes the row and raises `attempt`. What a
holder stores names its attempt, and is dropped where there is a later one.
"""

from datetime import timedelta
from typing import LiteralString

LEASE = timedelta(seconds=8)
"""Time after which a claim that nobody extends runs out. Three extensions may be missed: an event loop kept busy by
models is a second or two late, and replacing a lost connection takes as long. Whoever waits for the answer of a process
that died waits ten seconds more at most."""

BEAT_SECONDS = 2.0
"""Interval at which a process extends its claims."""

RETRY_SECONDS = 1.0
"""Wait before work that failed unexpectedly is taken again, and between attempts to reach the database."""

CHANNEL: LiteralString = "askgraph_work"
"""Notifications here name the task that has something to do."""

UNFINISHED: LiteralString = "state IN ('queued', 'running')"
"""Condition for runs and ingestions that have not ended."""

MAY_BE_TAKEN: LiteralString = "(state = 'queued' OR state = 'running' AND %(rescue)s) AND claimed_until < now()"
"""Condition for rows that nobody holds. `rescue`: also those whose claim has run out."""

HOLD_LEASE: LiteralString = """
    SELECT FROM ingestions
    WHERE workspace_id = %(workspace_id)s AND arrival = %(arrival)s AND attempt = %(attempt)s AND state = 'running'
    FOR SHARE
"""
"""Keeps others from taking a file until the transaction ends. Returns no row where one of them has done so."""
