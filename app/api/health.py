"""Whether the service works, and how each part runs."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from app.api.dependencies import ServicesDep
from domain.errors import AskgraphError

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz(services: ServicesDep) -> JSONResponse:
    """200 while questions can be answered: the database is needed, the cache and the models are not."""
    problem: str | None = None
    embeddings = services.embeddings_problem
    try:
        await services.ping()
        embeddings = await services.find_embeddings_problem()
    except AskgraphError as error:
        problem = error.message
    cache = "up" if await services.answers.is_up() else "down"
    answering = services.describe_models()
    rerank = services.find_rerank_problem()
    wanting = rerank or embeddings or cache == "down" or any(state != "ok" for state in answering.values())
    body = {
        "status": "down" if problem else "degraded" if wanting else "ok",
        "database": "down" if problem else "up",
        "cache": cache,
        "models": await services.find_models_problem() or ("ok" if answering else "none"),
        "answering": answering,
        "embeddings": embeddings or "ok",
        "rerank": rerank or "ok",
        "problem": problem,
        "parts": services.parts,
        "modes": list(services.modes),
    }
    return JSONResponse(body, 503 if problem else 200)
