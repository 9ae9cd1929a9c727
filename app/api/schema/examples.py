"""Example responses for the OpenAPI document."""

from typing import Any

_RUN_ID = "4f0c2b1e-6a55-4e0e-9d0a-0f6d0c3c2f11"
_THREAD_ID = "a3a7a2f0-2a3c-4a52-8c44-0a2d9a5b7c90"
_DOCUMENT_ID = "0b8e6f0a-2f63-5d6c-9d57-7d0f7a0c4e2b"
_AT = "2026-11-22T12:00:00+00:00"

_CITATION: dict[str, Any] = {
    "marker": 1,
    "document_id": _DOCUMENT_ID,
    "title": "Station handbook",
    "source": "handbook.md",
    "revision": 2,
    "updated_at": _AT,
    "chunk_id": "5b1f3f8e-1f0e-5f5e-8f53-7d8f0c9a1b2c",
    "chunk_index": 0,
    "page": None,
    "boxes": [],
    "heading_path": ["Station handbook", "Warranty"],
    "start": 31,
    "end": 108,
    "text": "The Falke weather station has a warranty of 36 months from the date of purchase.",
    "score": 0.92,
}

_DONE: dict[str, Any] = {
    "run_id": _RUN_ID,
    "thread_id": _THREAD_ID,
    "answer": "The Falke weather station has a warranty of 36 months from the date of purchase. [1]",
    "citations": [_CITATION],
    "outcome": "answered",
    "abstained": False,
    "outcome_reasons": [],
    "framing": {"opening": 0, "closing": 0},
    "route": "needs_retrieval",
    "mode": "standard",
    "standalone_question": "How long is the warranty of the Falke?",
    "confidence": 0.94,
    "verification": {"status": "skipped", "claims": []},
    "cached": False,
    "stopped": False,
    "usage": [],
    "cost": 0.0,
    "timings": {"route": 2.1, "retrieve": 9.8, "rerank": 4.0, "grade": 3.2, "generate": 5.5, "total": 31.7},
    "warnings": [],
    "answered_by": "local",
    "degraded": [],
    "prompts": {},
    "trace_url": None,
}

ANSWER: dict[str, Any] = {**_DONE, "sources": [_CITATION]}

RUN: dict[str, Any] = {
    "run_id": _RUN_ID,
    "thread_id": _THREAD_ID,
    "workspace": "default",
    "question": "How long is the warranty of the Falke?",
    "mode": "standard",
    "state": "done",
    "attempt": 1,
    "accepted_at": _AT,
    "started_at": _AT,
    "ended_at": _AT,
    "stop_requested": False,
    "forked_from": None,
    "ended": {"event": "done", **_DONE},
}

RUN_LIST: dict[str, Any] = {
    "since": _AT,
    "runs": [
        {
            "run_id": _RUN_ID,
            "thread_id": _THREAD_ID,
            "started_at": _AT,
            "question": "How long is the warranty of the Falke?",
            "mode": "standard",
            "route": "needs_retrieval",
            "outcome": "answered",
            "confidence": 0.94,
            "top_score": 0.92,
            "retries": 0,
            "candidates": 6,
            "sources": 5,
            "citations": 1,
            "verification": "skipped",
            "cached": False,
            "answered_by": "local",
            "cost": 0.0,
            "ms": 31.7,
            "warnings": 0,
            "degraded": 0,
            "outdated": 0,
            "error": None,
            "replay": False,
            "reasons": [],
            "rating": "down",
            "complaint": "incomplete",
            "comment": "It does not say what the warranty covers.",
        }
    ],
    "next": None,
}

WHY: dict[str, Any] = {
    "run_id": _RUN_ID,
    "facts": [
        {
            "about": "outcome",
            "text": "answered by local in mode standard, confidence 0.94: 0.34 above the 0.60 that answers at once",
        }
    ],
}

TRACE: dict[str, Any] = {
    "run_id": _RUN_ID,
    "thread_id": _THREAD_ID,
    "question": "How long is the warranty of the Falke?",
    "standalone_question": "How long is the warranty of the Falke?",
    "mode": "standard",
    "started_at": _AT,
    "outcome": "answered",
    "error": None,
    "answer": _DONE["answer"],
    "answered_by": "local",
    "confidence": 0.94,
    "running": False,
    "cached": False,
    "cost": 0.0,
    "ms": 31.7,
    "forked_from": None,
    "path": ["route", "retrieve", "rerank", "grade", "generate"],
    "steps": [
        {
            "number": 3,
            "name": "rerank",
            "node": "rerank",
            "checkpoint_id": "1f0c5c1e-0000-6000-8000-000000000000",
            "ms": 4.0,
            "next": ["grade"],
            "changed": [{"field": "sources", "text": "0 → 5; new: “Station handbook › Warranty”"}],
            "warnings": [],
            "usage": [],
            "calls": [
                {
                    "port": "Library",
                    "method": "read_passages",
                    "summary": "→ 6 found",
                    "messages": [],
                    "reply": "",
                    "input_tokens": 0,
                    "output_tokens": 0,
                    "cost": 0,
                    "error": None,
                    "cut": False,
                }
            ],
            "more_calls": 0,
            "candidates": [
                {
                    "chunk_id": _CITATION["chunk_id"],
                    "document_id": _DOCUMENT_ID,
                    "title": "Station handbook › Warranty",
                    "snippet": "The Falke weather station has a warranty of 36 months …",
                    "dense": {"rank": 1, "score": 0.69},
                    "lexical": {"rank": 1, "score": 2.47},
                    "fused": {"rank": 1, "score": 2.72},
                    "rerank": {"rank": 1, "score": 0.84},
                    "moved": 0,
                    "source": 1,
                    "cited": True,
                    "dropped": None,
                }
            ],
            "grade": None,
            "claims": [],
        }
    ],
    "taped": True,
    "untaped": "",
}

STATE: dict[str, Any] = {
    "run_id": _RUN_ID,
    "step": "rerank",
    "checkpoint_id": "1f0c5c1e-0000-6000-8000-000000000000",
    "values": {"question": "How long is the warranty of the Falke?", "retries": 0},
}

GRAPH: dict[str, Any] = {
    "width": 469.5,
    "height": 511.0,
    "steps": [
        {"name": "route", "label": "Reading the question", "x": 268.0, "y": 24.0, "width": 50.5, "height": 39.0},
    ],
    "edges": [{"source": "rerank", "target": "grade", "label": None, "points": [[340.0, 160.0], [340.0, 184.0]]}],
}

_PLACE: dict[str, Any] = {
    "document_id": _DOCUMENT_ID,
    "name": "Station handbook › Warranty",
    "start": 31,
    "end": 108,
}

_ENDING: dict[str, Any] = {
    "outcome": "answered",
    "error": None,
    "route": "needs_retrieval",
    "answer": _DONE["answer"],
    "citations": [_PLACE],
    "verdict": "skipped",
    "confidence": 0.94,
    "answered_by": "local",
    "retries": 0,
    "path": ["route", "retrieve", "rerank", "grade", "generate"],
}

WHAT_IF: dict[str, Any] = {
    "run_id": _RUN_ID,
    "recorded": _ENDING,
    "outcomes": [
        {
            "kind": "source",
            "label": "without source 1, Station handbook",
            "set": {},
            "mode": None,
            "begins": "grade",
            "node": None,
            "after": None,
            "replay": None,
            "ending": {**_ENDING, "outcome": "abstained", "answer": "…", "citations": [], "confidence": 0.0},
            "compared": {"flipped": ["outcome", "answer", "citations"], "gained": [], "lost": [_PLACE]},
            "taped": 2,
            "made": 1,
            "problem": None,
        }
    ],
    "flipping": 1,
    "not_tried": 0,
    "left_out": 0,
    "taped": True,
    "tokens": 0,
    "cost": 0.0,
}

REPLAY_PLAN: dict[str, Any] = {
    "runs": 40,
    "affected": 1,
    "unaffected": 36,
    "skipped": {"from the cache": 3},
    "begins": {"rerank": 1},
    "repeated_cost": 0.0,
    "unpriced_calls": 0,
}

FLEET_REPORT: dict[str, Any] = {
    "change": "profile.rerank.keep=3",
    "plan": REPLAY_PLAN,
    "tried": 1,
    "not_tried": {},
    "changed": 0,
    "share_changed": 0.0,
    "flipped": {},
    "outcomes": {},
    "routes_changed": 0,
    "citations_gained": 0,
    "citations_lost": 0,
    "spent": 0.0,
    "runs": [
        {
            "run_id": _RUN_ID,
            "question": "How long is the warranty of the Falke?",
            "begins": "rerank",
            "recorded": _ENDING,
            "ending": _ENDING,
            "compared": {"flipped": [], "gained": [], "lost": []},
            "cost": 0.0,
            "problem": None,
        }
    ],
}

REPLAY_EVENTS = (
    'event: plan\ndata: {"plan":{"runs":40,"affected":1},"budget":null}\n\n'
    'event: progress\ndata: {"done":1,"total":1}\n\n'
    'event: report\ndata: {"report":{"tried":1,"changed":0}}\n\n'
)

_SIDE: dict[str, Any] = {
    "run_id": _RUN_ID,
    "question": "How long is the warranty of the Falke?",
    "mode": "standard",
    "started_at": _AT,
    "ending": _ENDING,
    "costs": {"ms": 24.5, "by_node": {"route": 2.1, "retrieve": 9.8}, "calls": 0, "tokens": 0, "cost": 0.0},
}

FAILURES: dict[str, Any] = {
    "since": _AT,
    "runs": 120,
    "failures": 1,
    "groups": [
        {
            "cause": "nothing found",
            "runs": 1,
            "by_mode": {"standard": 1},
            "examples": [
                {
                    "run_id": _RUN_ID,
                    "question": "What does the zoo in Lisbon charge for parrots?",
                    "mode": "standard",
                    "detail": "nothing_found",
                }
            ],
        }
    ],
}

DIFFERENCE: dict[str, Any] = {
    "one": _SIDE,
    "other": {**_SIDE, "run_id": "7c1d4a52-0d1f-4c0e-8f77-0c7a3f6f5b10"},
    "given": [{"field": "profile.rerank.keep", "text": "5 → 1"}],
    "answer": [
        {"kind": "same", "text": "The warranty of the Falke is"},
        {"kind": "removed", "text": " 36 months. [1]"},
        {"kind": "added", "text": " 24 months. [1]"},
    ],
    "same_steps": 2,
    "first": {
        "one": "rerank",
        "other": "rerank",
        "text": "rerank came to another result",
        "changed": [{"field": "sources", "text": "5 → 1; gone: “Amsel manual › Warranty”"}],
        "call": {"port": "Library", "method": "read_around", "kind": "request", "lines": ["--- first", "+++ second"]},
    },
    "compared": {"flipped": [], "gained": [], "lost": []},
}

DOCUMENT: dict[str, Any] = {
    "id": _DOCUMENT_ID,
    "workspace_id": "default",
    "source": "handbook.md",
    "title": "Station handbook",
    "media_type": "text/markdown",
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "pages": None,
    "characters": 420,
    "chunks": 3,
    "created_at": _AT,
    "updated_at": _AT,
    "metadata": {"team": "support"},
    "revision": 2,
    "revised_at": _AT,
    "to_embed": 0,
    "groups": ["support"],
}

ERASURE: dict[str, Any] = {
    "ids": [_DOCUMENT_ID, "handbook.md"],
    "sentences": 12,
    "erased": {"accepted_runs": 2, "cache": 3, "checkpoint_blobs": 2, "documents": 1, "runs": 2, "tapes": 2},
    "searched": 31,
    "found": {},
}

REVISION: dict[str, Any] = {
    "revision": 1,
    "content_hash": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "title": "Station handbook",
    "characters": 410,
    "created_at": _AT,
    "superseded_at": _AT,
}

DOCUMENT_WITH_TEXT: dict[str, Any] = {**DOCUMENT, "text": "# Station handbook\n\n## Warranty\n…"}

BLOCKS: dict[str, Any] = {
    "document_id": _DOCUMENT_ID,
    "title": "Station handbook",
    "characters": 1480,
    "blocks": [
        {
            "kind": "list",
            "start": 31,
            "end": 96,
            "heading_path": ["Station handbook", "Warranty"],
            "page": None,
            "text": "Not covered are:\n\n- damage by hail\n- batteries",
        }
    ],
}

_OF_PASSAGE = ("document_id", "title", "source", "heading_path", "page", "start", "end", "text", "score")
PASSAGES: dict[str, Any] = {"passages": [{name: _CITATION[name] for name in _OF_PASSAGE}]}

_REPORT: dict[str, Any] = {
    "source": "handbook.md",
    "status": "added",
    "document_id": _DOCUMENT_ID,
    "title": "Station handbook",
    "pages": None,
    "chunks": 3,
    "embedded": 3,
    "error": None,
    "code": None,
    "note": None,
}

INGEST: dict[str, Any] = {"documents": [_REPORT], "chunks": 3, "failed": 0, "passed_over": 0, "seconds": 0.21}

FAILED_INGEST: dict[str, Any] = {
    "documents": [
        {
            **_REPORT,
            "status": "failed",
            "document_id": None,
            "title": None,
            "chunks": 0,
            "embedded": 0,
            "error": "The PDF file is damaged.",
            "code": "unreadable_document",
        }
    ],
    "chunks": 0,
    "failed": 1,
    "passed_over": 0,
    "seconds": 0.02,
}

INGESTION: dict[str, Any] = {
    "ingestion_id": "17",
    "workspace": "default",
    "source": "handbook.md",
    "state": "done",
    "accepted_at": _AT,
    "ended_at": _AT,
    "report": _REPORT,
    "progress": {"stage": "done", "done": 3, "total": 3},
}

INGESTIONS: dict[str, Any] = {
    "ingestions": [
        {
            **INGESTION,
            "state": "running",
            "ended_at": None,
            "report": None,
            "progress": {"stage": "reading", "done": 21, "total": 83},
        }
    ]
}

CANCELLED_INGESTION: dict[str, Any] = {
    **INGESTION,
    "state": "cancelled",
    "progress": {"stage": "done", "done": 0, "total": 0},
    "report": {**dict.fromkeys(_REPORT), "source": "handbook.md", "status": "cancelled", "chunks": 0, "embedded": 0},
}

_WAITING: dict[str, Any] = {"stage": "waiting", "done": 0, "total": None}

ACCEPTED_INGEST: dict[str, Any] = {
    "documents": [],
    "chunks": 0,
    "failed": 0,
    "passed_over": 0,
    "seconds": 0.01,
    "ingestions": [{**INGESTION, "state": "queued", "ended_at": None, "report": None, "progress": _WAITING}],
}

HISTORY: dict[str, Any] = {
    "thread_id": _THREAD_ID,
    "steps": [
        {
            "checkpoint_id": "1f0c7d2e-0a1b-6c3d-8001-5e6f7a8b9c0d",
            "parent_checkpoint_id": "1f0c7d2e-09ff-6b2c-8000-4d5e6f7a8b9c",
            "run_id": _RUN_ID,
            "node": "route",
            "changed": {"route": "needs_retrieval"},
            "ms": 2.1,
            "next": ["retrieve"],
            "created_at": _AT,
        }
    ],
    "next": None,
}

_CONVERSATION: dict[str, Any] = {
    "thread_id": _THREAD_ID,
    "title": "How long is the warranty of the Falke?",
    "created_at": _AT,
    "updated_at": _AT,
    "turns": 3,
    "running": None,
}

CONVERSATION = _CONVERSATION

CONVERSATIONS: dict[str, Any] = {"threads": [_CONVERSATION], "next": f"1795348800000000-{_THREAD_ID}"}

WORKSPACES: dict[str, Any] = {"workspaces": [{"id": "default", "documents": 8, "threads": 3}]}

FEEDBACK: dict[str, Any] = {
    "rating": "down",
    "reason": "incomplete",
    "comment": "It leaves out the battery.",
    "given_at": _AT,
}

_UNSENT = ("chunk_id", "chunk_index", "updated_at")

THREAD: dict[str, Any] = {
    "thread_id": _THREAD_ID,
    "title": "How long is the warranty of the Falke?",
    "turns": [
        {
            **{name: RUN[name] for name in ("run_id", "question", "mode", "state", "accepted_at", "ended")},
            "document_ids": None,
            "sources": [{key: _CITATION[key] for key in _CITATION if key not in _UNSENT} | {"marker": 2}],
            "steps": [{"node": "route", "ms": 2.1}, {"node": "retrieve", "ms": 9.8}],
            "feedback": FEEDBACK,
            "corrections": [{"reason": "1 statement is not supported by its source.", "withdrawn": "60 months. [1]"}],
        }
    ],
    "next": None,
}

_SPENDING: dict[str, Any] = {
    "name": "standard",
    "runs": 12,
    "cached": 3,
    "calls": 27,
    "input_tokens": 41_300,
    "output_tokens": 2_900,
    "cost": 0.0174,
    "unpriced": 0,
}

COSTS: dict[str, Any] = {
    "since": "2026-11-15T12:00:00+00:00",
    "by": "mode",
    "costs": [_SPENDING],
    "total": {**_SPENDING, "name": None},
}

CACHE_COUNTS: dict[str, Any] = {"workspace": "default", "hits": 3, "misses": 9, "shared": 1}

EXPLANATION: dict[str, Any] = {
    "hit": False,
    "components": {"workspace_id": "default", "question": "How long is the warranty?", "mode": "standard"},
    "nearest": {"workspace_id": "default", "question": "How long is the warranty?", "mode": "fast"},
    "stored_at": _AT,
    "differences": [{"component": "mode", "message": "'standard' instead of 'fast'"}],
}

HEALTH: dict[str, Any] = {
    "status": "ok",
    "database": "up",
    "cache": "up",
    "models": "none",
    "answering": {},
    "embeddings": "ok",
    "rerank": "ok",
    "originals": "ok",
    "problem": None,
    "ms": {"database": 6.2, "cache": 0.4, "embeddings": 0.01},
    "runs": {"running": 3, "waiting": 0, "most": 256, "saturated": False},
    "parts": {"database": "embedded Postgres in /home/me/.askgraph"},
    "modes": ["fast", "standard", "thorough"],
    "sign_in": False,
}

UNHEALTHY: dict[str, Any] = {
    **HEALTH,
    "status": "down",
    "database": "down",
    "problem": "The database does not answer.",
}

CALLER = {"name": "key:5f2c9a10", "workspaces": ["legal"], "groups": None, "rights": ["ask", "ingest"]}
