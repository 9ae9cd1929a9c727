#!/bin/sh
# install-debian.sh PROGRAM PACKAGE TESTS puts a program of a Debian package on the PATH for some tests. Where that is
# impossible those tests are skipped, except in CI (CI=true), where this script fails instead.
set -u
program=$1 package=$2 tests=$3

give_up() {
    echo "install-debian: $1" >&2
    if [ "${CI:-}" = true ]; then
        exit 1
    fi
    echo "install-debian: $tests will be skipped." >&2
    exit 0
}

if command -v "$program" >/dev/null; then
    exit 0
fi
command -v apt-get >/dev/null || give_up "there is no $program and no apt-get. Install $program yourself."

as_root=
if [ "$(id -u)" -ne 0 ]; then
    # -n: fail rather than wait for a password.
    sudo -n true 2>/dev/null || give_up "installing $package needs root. Run: sudo apt-get install $package"
    as_root="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package" >"$log" 2>&1
}
# A machine's package lists are often missing or too old to name a version that can still be fetched.
if ! install && ! { $as_root apt-get update -qq >"$log" 2>&1 && install; }; then
    tail -n 5 "$log" >&2
    give_up "apt-get could not install $package."
fi
command -v "$program" >/dev/null || give_up "$package was installed, but $program is not on the PATH."
