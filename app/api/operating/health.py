"""Health: whether the process is alive, and whether the service works and how each part runs."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from app.api.dependencies import (
    AdmissionDep,
    ChecksDep,
    ModesDep,
    PartsDep,
    RunManagerDep,
    SettingsDep,
    SignInDep,
)
from app.api.schema.openapi import fail_with, respond_with
from app.api.schema.responses import HealthBody, LiveBody
from domain.errors import Draining
from domain.health import ANSWERING, run_checks

router = APIRouter(tags=["health"])

_HIDDEN = {
    "models": "A language model does not answer, or cannot be used.",
    "embeddings": "The embedding model does not answer, or cannot be used.",
    "rerank": "The reranker does not answer, or cannot be used.",
    "originals": "The storage of files does not answer, or cannot be used.",
}
"""What is told of a part's problem to callers who may not see the parts."""


@router.get("/healthz", responses=respond_with(LiveBody, "The process is alive.") | fail_with())
async def healthz() -> JSONResponse:
    """Say that the process is alive. Asks nothing else: restarting it would repair nothing."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    responses=respond_with(HealthBody, "Questions can be answered.")
    | fail_with()
    | respond_with(HealthBody, "Questions cannot be answered.", 503),
)
async def readyz(
    checks: ChecksDep,
    parts: PartsDep,
    modes: ModesDep,
    admission: AdmissionDep,
    manager: RunManagerDep,
    sign_in: SignInDep,
    settings: SettingsDep,
) -> JSONResponse:
    """Check every part, and write to the database. 200 while questions can be answered, which needs the database, but
    neither the cache nor the models; otherwise 503, also while the process is about to end. What the parts are, and
    which models answer and why not, is told to callers with the right `debug` in all workspaces."""
    findings = await run_checks(checks)
    # Problems have names, addresses and paths, and words of providers in them.
    problems = {
        name: finding.problem and (finding.problem if parts else _HIDDEN.get(name, finding.problem))
        for name, finding in findings.items()
    }
    answering = {
        name.removeprefix(ANSWERING): problem for name, problem in problems.items() if name.startswith(ANSWERING)
    }
    database = problems["database"]
    problem = database or (Draining().message if manager.is_draining else None)
    body = {
        "status": "down" if problem else "degraded" if any(problems.values()) else "ok",
        "database": "down" if database else "up",
        "cache": "down" if problems["cache"] else "up",
        "models": problems.get("models") or ("ok" if answering else "none"),
        "answering": {model: problem or "ok" for model, problem in answering.items()} if parts else {},
        "embeddings": problems.get("embeddings") or "ok",
        "rerank": problems.get("rerank") or "ok",
        "originals": problems.get("originals") or "ok",
        "problem": problem,
        "ms": {name: finding.ms for name, finding in findings.items() if not name.startswith(ANSWERING)},
        "runs": {
            "running": admission.running,
            "waiting": admission.waiting,
            "most": admission.most,
            "saturated": admission.running >= admission.most,
        },
        "parts": dict(parts),
        "modes": list(modes),
        "sign_in": sign_in is not None,
        "keys_from": settings.keys_from,
    }
    return JSONResponse(body, 503 if problem else 200)
