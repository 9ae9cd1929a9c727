"""Errors of OpenAI's SDK, which also asks for embeddings and reranks, as ours."""

import httpx2
import openai

from domain.errors import AskgraphError, ModelError, ModelRejectedKey, ModelTimeout, ModelUnavailable

_PASSING = (408, 409, 498, 499)
"""Statuses below 500 after which asking again later may help."""


def translate(error: Exception, model: str, *, keys: str, names: str) -> AskgraphError:
    """Translate an error of a call of a model, which is named as in "The reranker rerank-v3.5". `keys` and `names` are
    the settings of its key, and of its name and address."""
    match error:
        case TimeoutError() | openai.APITimeoutError() | httpx2.TimeoutException():
            return ModelTimeout(f"{model} took too long. Try again in a moment.")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return ModelRejectedKey(f"{model} did not accept the API key. Check {keys}.")
        case openai.NotFoundError():
            return ModelError(f"{model} does not exist at this address. Check {names}.")
        case openai.RateLimitError() if error.code == "insufficient_quota":
            return ModelError(f"{model} is refused: the account behind the API key has no quota left.")
        case openai.RateLimitError():
            return ModelUnavailable(f"{model} takes no more requests for now. Try again in a moment.")
        case openai.APIStatusError() if error.status_code >= 500:
            return ModelUnavailable(f"{model} had an error ({error.status_code}). Try again in a moment.")
        case openai.APIStatusError() if error.status_code not in _PASSING:
            return ModelError(f"{model} did not accept the request: {error.message}")
        case openai.APIResponseValidationError():
            return ModelError(f"{model} sent a reply that violates its protocol.")
        case openai.OpenAIError() | httpx2.HTTPError():
            return ModelUnavailable(f"{model} does not answer.")
        case _:
            return ModelError(f"{model} sent a reply that violates its protocol.")
