#!/bin/sh
# Prepare a release on main: `make release VERSION=1.0.0`. Everything but the tag, which a person sets.
set -eu
version=${1:?Say which version: make release VERSION=1.0.0}
bin=.venv/bin
today=$(date +%F)

echo "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$' || { echo "$version is no version such as 1.0.0"; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "Commit or remove first:"; git status --short; exit 1; }
[ "$(git branch --show-current)" = main ] || { echo "A release is made on main"; exit 1; }
[ -z "$(git tag --list "v$version")" ] || { echo "v$version has been released"; exit 1; }
sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -q '^- ' \
    || { echo "CHANGELOG.md says nothing of this version below [Unreleased]"; exit 1; }

sed -i "s/^version = .*/version = \"$version\"/" pyproject.toml
sed -i "s/^## \[Unreleased\]$/## [Unreleased]\n\n## [$version] - $today/" CHANGELOG.md
$bin/python -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation -e .

# The next version's tests upgrade what this one stores.
$bin/python -m tests.upgrades.record

make check test
rm -rf dist
$bin/python -m hatchling build
git add CHANGELOG.md pyproject.toml tests/upgrades
git commit -q -m "Release $version"
sha256sum dist/*
echo "Read CHANGELOG.md once more, then: git tag -a v$version -m v$version && git push --follow-tags, and upload dist/."
