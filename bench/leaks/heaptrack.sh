#!/usr/bin/env bash
# What heaptrack says about the programs of known truth: for each, the call site that leaks and the one that heaptrack lists
# first among its leaks. `bench/leaks/heaptrack.sh [NAME…]`, a dozen programs by default, three seconds each. Needs heaptrack.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v heaptrack heaptrack_print >/dev/null || { echo "there is no heaptrack (Debian: apt-get install heaptrack)" >&2; exit 1; }
cargo build --quiet --release --package heapray-leak-programs
program=target/release/heapray-leak-programs
names=("$@")
((${#names[@]})) || names=(steady-one-of-hundred steady-slow-under-churn bursts-rehashing-map idle-head-every-request
    idle-tail-one-of-hundred idle-tail-long-time-to-live short-burst-linked-list ramp-up-feature-flag
    day-and-night-one-of-eight-threads start-up-every-request spike-growing-vector idle-head-large-seldom
    steady-nothing idle-tail-lru-cache day-and-night-queue warm-up-pool)
files=$(mktemp --directory)
trap 'rm -rf "$files"' EXIT

site='s/.*leak_programs::sites::\([a-z_]*\).*/\1/p'
printf '%-36s %-16s %s\n' program leaks heaptrack
for name in "${names[@]}"; do
    truth=$("$program" list | awk -v name="$name" '$1 == name { print $2 }' | sed 's/.*:://')
    heaptrack --output "$files/$name" "$program" run "$name" --seconds 3 >/dev/null 2>&1
    said=$(heaptrack_print --file "$files/$name".* --print-leaks 1 --print-peaks 0 --print-allocators 0 \
        --print-temporary 0 2>/dev/null | sed -n "$site" | head -1 || true)
    printf '%-36s %-16s %s\n' "$name" "$truth" "$said"
done
