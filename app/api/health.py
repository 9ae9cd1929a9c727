"""Health: whether the service works, and how each part runs."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from app.api import examples
from app.api.dependencies import ChecksDep, ModesDep, PartsDep
from app.api.openapi import fail_with, respond_with
from app.api.responses import HealthBody
from domain.health import ANSWERING, run_checks

router = APIRouter(tags=["health"])


@router.get(
    "/healthz",
    responses=respond_with(HealthBody, examples.HEALTH, "Questions can be answered.")
    | fail_with()
    | respond_with(HealthBody, examples.UNHEALTHY, "Questions cannot be answered.", 503),
)
async def healthz(checks: ChecksDep, parts: PartsDep, modes: ModesDep) -> JSONResponse:
    """Check every part. 200 while questions can be answered, which needs the database, but neither the cache nor the
    models; otherwise 503."""
    problems = await run_checks(checks)
    answering = {
        name.removeprefix(ANSWERING): problem for name, problem in problems.items() if name.startswith(ANSWERING)
    }
    database = problems["database"]
    body = {
        "status": "down" if database else "degraded" if any(problems.values()) else "ok",
        "database": "down" if database else "up",
        "cache": "down" if problems["cache"] else "up",
        "models": problems.get("models") or ("ok" if answering else "none"),
        "answering": {model: problem or "ok" for model, problem in answering.items()},
        "embeddings": problems.get("embeddings") or "ok",
        "rerank": problems.get("rerank") or "ok",
        "originals": problems.get("originals") or "ok",
        "problem": database,
        "parts": dict(parts),
        "modes": list(modes),
    }
    return JSONResponse(body, 503 if database else 200)
