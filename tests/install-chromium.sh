#!/bin/sh
# Puts Debian's chromium on the PATH for the page tests. Where that is impossible those tests are skipped, except in
# CI (CI=true), where this script fails instead.
set -u

give_up() {
    echo "install-chromium: $1" >&2
    if [ "${CI:-}" = true ]; then
        exit 1
    fi
    echo "install-chromium: the page tests will be skipped." >&2
    exit 0
}

if command -v chromium >/dev/null; then
    exit 0
fi
command -v apt-get >/dev/null || give_up "there is no chromium and no apt-get. Install chromium yourself."

as_root=
if [ "$(id -u)" -ne 0 ]; then
    # -n: fail rather than wait for a password.
    sudo -n true 2>/dev/null || give_up "installing chromium needs root. Run: sudo apt-get install chromium"
    as_root="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >"$log" 2>&1
}
# A machine's package lists are often missing or too old to name a version that can still be fetched.
if ! install && ! { $as_root apt-get update -qq >"$log" 2>&1 && install; }; then
    tail -n 5 "$log" >&2
    give_up "apt-get could not install chromium."
fi
command -v chromium >/dev/null || give_up "chromium was installed, but is not on the PATH."
