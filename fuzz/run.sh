#!/usr/bin/env bash
# Fuzzes each target for a while: `fuzz/run.sh [SECONDS]`, 30 in all by default, which is what continuous integration does.
# Starts from the corpus in fuzz/corpus (made anew by the example `seeds` where it is missing) and adds to it.
#
# Installs cargo-fuzz below target/ where there is none; needs compilers of C and C++, and objcopy. A stable Rust compiler does:
# RUSTC_BOOTSTRAP lets it instrument. No sanitizer is used: there is no unsafe code to watch, and memory is bounded by libFuzzer's own limit.
set -euo pipefail
cd "$(dirname "$0")"
export RUSTC_BOOTSTRAP=1

tools=$PWD/../target/tools/cargo-fuzz
export PATH="$PATH:$tools/bin"
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked --debug --root "$tools" cargo-fuzz --version 0.13.1

# What the targets write here is gone at the end.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

targets=(read events views formats round_trip names)
seconds=$((${1:-30} / ${#targets[@]}))
corpus=corpus/captures
objects=corpus/objects

if [ ! -d "$corpus" ]; then
    captures=()
    memray=${MEMRAY_PYTHON:-../target/tools/python/bin/python}
    if [ -x "$memray" ]; then
        made=$TMPDIR/captures
        mkdir "$made"
        "$memray" seeds.py "$made"
        captures=("$made"/*)
    else
        echo "no captures of memray's own among the seeds: there is no $memray"
    fi
    cargo run --quiet --example seeds -- "$corpus" "${captures[@]}"
fi

# Libraries with debug information of each kind, small enough to be changed in a useful way.
if [ ! -d "$objects" ]; then
    mkdir -p "$objects"
    library() { # name, flags…
        cc -shared -nostdlib -fPIC -O1 -Wl,--build-id -Wl,-z,noseparate-code "${@:2}" -o "$objects/$1" seeds.c
    }
    library plain
    library lines -g1
    library dwarf-4 -g -gdwarf-4
    library dwarf-5 -g -gdwarf-5
    library zlib -g -gz=zlib
    objcopy --compress-debug-sections=zstd "$objects/dwarf-5" "$objects/zstd"
fi

for target in "${targets[@]}"; do
    echo "== $target"
    mkdir -p "corpus/$target"
    seeds=$corpus
    if [ "$target" = names ]; then seeds=$objects; fi
    # The first folder takes what is found, the second is read only.
    cargo fuzz run --sanitizer none --debug-assertions "$target" "corpus/$target" "$seeds" -- \
        -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0
done
