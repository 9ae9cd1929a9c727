#!/bin/sh
# Installs what comes from npm: clients that tests run against the service, and the compiler that checks the types of the
# page's scripts. 140 MB, some seconds, versions pinned by package-lock.json. Where that is impossible those tests and
# checks are skipped, except in CI (CI=true), where this script fails.
set -u

give_up() {
    echo "install-node-clients: $1" >&2
    if [ "${CI:-}" = true ]; then
        exit 1
    fi
    echo "install-node-clients: their tests and checks will be skipped." >&2
    exit 0
}

cd "$(dirname "$0")/protocols/node" || exit 1
if [ node_modules/.package-lock.json -nt package-lock.json ]; then
    exit 0
fi
if ! { command -v node && command -v npm; } >/dev/null; then
    command -v apt-get >/dev/null || give_up "there is no node with npm, and no apt-get. Install Node.js yourself."
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        # -n: fail rather than wait for a password.
        sudo -n true 2>/dev/null || give_up "installing Node.js needs root. Run: sudo apt-get install nodejs npm"
        as_root="sudo -n"
    fi
    install() {
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends nodejs npm >/dev/null
    }
    # A machine's package lists are often missing or too old to name a version that can still be fetched.
    install || { $as_root apt-get update -qq && install; } || give_up "apt-get could not install Node.js."
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || give_up "npm could not install the clients."
# npm keeps the time of the release; the check above compares with that of the installation.
touch node_modules/.package-lock.json
