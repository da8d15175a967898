#!/usr/bin/env bash
# What docs/building.md says: wall and CPU time, crates and size of the builds, from a fresh clone and empty target folders.
#
#   benches/build.sh [demo] [full] [wheel] [test]      # all four take about half an hour on two cores
#
# Downloads come first and are not counted. Run it on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
clone=$(mktemp -d)/a2lp
trap 'rm -rf "$(dirname "$clone")"' EXIT
git clone --quiet . "$clone"
cd "$clone"
cargo fetch --quiet
[ $# -gt 0 ] || set -- demo full wheel test

crates() { cargo tree --prefix none --edges normal,build "$@" | sed 's/ (\*)$//' | sort -u | wc -l; }
size() { awk -v bytes="$(wc -c <"$1")" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'; }

# measure NAME CRATES COMMAND…: a row of the table, less its last column
measure() {
    local name=$1 count=$2
    shift 2
    rm -rf target
    TIMEFORMAT='%R %U %S'
    local times
    { times=$( { time "$@" >/tmp/a2lp-build.log 2>&1; } 2>&1 ); } || { cat /tmp/a2lp-build.log; exit 1; }
    awk -v name="$name" -v count="$count" '{ printf "| %s | %d:%02d | %.1f | %s | ", name, $1 / 60, $1 % 60, ($2 + $3) / 60, count }' <<<"$times"
}

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(rustc --version)"
echo
echo "| | wall, min:s | CPU minutes | crates | size |"
echo "|---|---|---|---|---|"
for what in "$@"; do
    case $what in
    demo)
        measure '`cargo run --release -- demo`' "$(crates -p a2lp-cli)" cargo run --release -- demo
        echo "$(size target/release/a2lp) |"
        ;;
    full)
        measure '`cargo build --release --features full`' "$(crates -p a2lp-cli --features full)" cargo build --release --features full
        echo "$(size target/release/a2lp) |"
        ;;
    wheel)
        measure '`make wheel`' "$(crates -p a2lp-python)" make wheel
        echo "$(size target/python/wheels/*.whl) |"
        ;;
    test)
        measure '`make test`' "$(crates --workspace)" make test
        echo "– |"
        ;;
    esac
done
