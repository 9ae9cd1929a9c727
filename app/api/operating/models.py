"""The language models, for administrators of the whole deployment."""

from fastapi import APIRouter, Depends, Request

from app.api.dependencies import ModelChooserDep, administrate_all, needs
from app.api.schema.openapi import answer_with
from app.api.schema.schemas import ModelRequest
from domain.model_names import KnownModels, Trial

router = APIRouter(
    prefix="/api/models", tags=["models"], route_class=needs("admin"), dependencies=[Depends(administrate_all)]
)


@router.get("", **answer_with(KnownModels, "The models."))
async def list_models(chooser: ModelChooserDep) -> KnownModels:
    """List the language models in use, and the servers of models that listen on the service's machine."""
    return await chooser.describe()


@router.post("", **answer_with(Trial, "What it can."))
async def try_model(body: ModelRequest, request: Request, chooser: ModelChooserDep) -> Trial:
    """Ask a language model three small questions, and keep it if wished: it is used from the next start on, unless the
    service's environment names one. No response shows its key."""
    request.state.targets = [body.name]
    return await chooser.try_model(body.name, body.address, body.key, keep=body.keep)
