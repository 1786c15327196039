#!/usr/bin/env bash
# What heap profilers name first for the programs of known truth, beside the call site that leaks.
#   bench/leaks/peers.sh [NAME… | --all]     sixteen programs by default; --all takes twenty minutes
# Each profiler records every allocation of a run of its own, with the same operations. Prints Markdown.
# Needs heaptrack, jemalloc with its jeprof (Debian: apt-get install heaptrack libjemalloc-dev), and memray.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${MEMRAY_PYTHON:-target/tools/python/bin/python}
for tool in heaptrack heaptrack_print jeprof "$python"; do
    command -v "$tool" >/dev/null || { echo "there is no $tool (memray: scripts/install-test-tools)" >&2; exit 1; }
done
cargo build --quiet --release --target-dir target --package heapray-cli --package heapray-leak-programs
cargo build --quiet --release --target-dir target --package heapray-leak-programs --example library
cargo build --quiet --release --target-dir target/torture --manifest-path torture/Cargo.toml --package heapray-preload
program=target/release/heapray-leak-programs
# For a minute of traffic, as by default. In three seconds the answers are the same.
seconds=8
files=$(mktemp --directory)
trap 'rm -rf "$files"' EXIT
"$program" list | sed 's/leak_programs::sites:://' >"$files/truth"

case ${1-} in
--all) mapfile -t names < <(awk '{ print $1 }' "$files/truth") ;;
"") names=(steady-one-of-hundred steady-slow-under-churn bursts-rehashing-map idle-head-every-request
    idle-tail-one-of-hundred idle-tail-long-time-to-live short-burst-linked-list ramp-up-feature-flag
    day-and-night-one-of-eight-threads start-up-every-request spike-growing-vector idle-head-large-seldom
    steady-nothing idle-tail-lru-cache day-and-night-queue warm-up-pool) ;;
*) names=("$@") ;;
esac

# The first call site of the program in a text: what Python and the program's harness hold is left out.
first_site() { sed --quiet '/.*leak_programs::sites::\([a-z_]*\).*/ { s//\1/p; q }' "$1"; }

# Each of these runs the program $1, writes into the empty directory $2, and prints what the profiler names first.
ask_heapray() { # the first candidate and its confidence, or -
    MEMRAY_PROFILER=true MEMRAY_PROFILER_DIR=$2 LD_PRELOAD=target/torture/release/libheapray_preload.so \
        "$program" run "$1" --seconds "$seconds"
    target/release/heapray leaks --quiet --num-largest 1 "$2/memray-report.bin" >"$2/text"
    local site confidence
    site=$(first_site "$2/text")
    confidence=$(sed --quiet 's/^ *\([a-z]*\) confidence,.*/\1/p' "$2/text")
    echo "${site:--}${confidence:+, $confidence}"
}
ask_heaptrack() { # the first of its leaks, which are in order of their bytes
    heaptrack --output "$2/recording" "$program" run "$1" --seconds "$seconds" >"$2/log"
    heaptrack_print --file "$2"/recording.* --print-leaks 1 --print-peaks 0 --print-allocators 0 --print-temporary 0 >"$2/text"
    first_site "$2/text"
}
ask_memray() { # the widest call site of `memray flamegraph --leaks`, and of `memray flamegraph`
    "$python" bench/leaks/memray_names.py target/release/examples/liblibrary.so "$1" "$seconds" "$2/recording"
}
ask_jemalloc() { # the first function of the profile that jemalloc writes at the end of the process
    MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:$2/recording LD_PRELOAD=libjemalloc.so.2 \
        "$program" run "$1" --seconds "$seconds"
    jeprof --text --show_bytes --inuse_space "$program" "$2"/recording.*.heap >"$2/text"
    first_site "$2/text"
}

columns=(heapray heaptrack "memray, leaks" "memray, high-water mark" jemalloc)
echo "| program | leaks |$(printf ' %s |' "${columns[@]}")"
echo "|---|---|---|---|---|---|---|"
declare -A right=() accused=()
leaking=0 harmless=0
for name in "${names[@]}"; do
    truth=$(awk -v name="$name" '$1 == name { print $2 }' "$files/truth")
    [[ $truth ]] || { echo "no program has the name $name" >&2; exit 1; }
    # All at the same time: a program sleeps for most of its time.
    jobs=()
    for profiler in heapray heaptrack memray jemalloc; do
        rm -rf "${files:?}/$profiler" && mkdir "$files/$profiler"
        "ask_$profiler" "$name" "$files/$profiler" >"$files/$profiler.answer" 2>"$files/$profiler.errors" &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do
        wait "$job" || { tail "$files"/*.errors >&2; exit 1; }
    done
    mapfile -t answers < <(cat "$files"/{heapray,heaptrack,memray,jemalloc}.answer)
    echo "| $name | $truth |$(printf ' %s |' "${answers[@]}")"

    if [[ $truth == - ]]; then ((++harmless)); else ((++leaking)); fi
    for column in "${!columns[@]}"; do
        row=${columns[column]}
        # Then heapray says that it may be a coincidence.
        [[ ${answers[column]} != *", low" ]] || row="heapray, low confidence"
        case "$truth ${answers[column]%,*}" in
        *" -") ;;
        "- "*) accused[$row]=$((${accused[$row]-0} + 1)) ;;
        # The container of a cache without a bound grows too.
        "cache cache_index" | "$truth $truth") right[$row]=$((${right[$row]-0} + 1)) ;;
        esac
    done
done

echo
echo "| profiler | right, of $leaking that leak | accuses, of $harmless that do not |"
echo "|---|--:|--:|"
for row in heapray "heapray, low confidence" "${columns[@]:1}"; do
    echo "| $row | ${right[$row]-0} | ${accused[$row]-0} |"
done
echo
echo "heapray: the first candidate, with high or medium confidence, and with low. The others always name something."
