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
