"""The answerers in the order in which they are asked: the profile's model, the fallback models, and at last quoting
without a model."""

from domain.ports.models import ChatModel
from domain.profile import GenerateKnobs
from nodes.context import Models

LOCAL = "local"
_OWN = "model"
_FALLBACK = "fallback "


def list_answerers(knobs: GenerateKnobs, models: Models) -> list[str]:
    """Return the answerers by their names in the state."""
    own = [_OWN] if find_model(_OWN, knobs, models) else []
    return [*own, *(f"{_FALLBACK}{number}" for number, _ in enumerate(models.fallbacks, 1)), LOCAL]


def find_next(answerer: str, knobs: GenerateKnobs, models: Models) -> str:
    """Return the answerer to ask after `answerer` failed."""
    order = list_answerers(knobs, models)
    return order[order.index(answerer) + 1] if answerer in order[:-1] else LOCAL


def find_model(answerer: str, knobs: GenerateKnobs, models: Models) -> ChatModel | None:
    """Return the model of that name. None for `local`, and for a name that this deployment does not have."""
    if answerer == _OWN:
        return models.small if knobs.model == "small" else models.large
    number = answerer.removeprefix(_FALLBACK)
    if number.isdigit() and 0 < int(number) <= len(models.fallbacks):
        return models.fallbacks[int(number) - 1]
    return None


def name_answerer(answerer: str, knobs: GenerateKnobs, models: Models) -> str:
    """Return the name to show for an answerer: the model's own, or `local`."""
    model = find_model(answerer, knobs, models)
    return model.name if model is not None else LOCAL
