#!/bin/bash
# make demo: numpy's core extension in two contexts, then a CPU-bound script in one and in two.
#
#   scripts/demo.sh [EXTISOLATE [PYTHON]]
set -euo pipefail
export LC_ALL=C

extisolate=$(realpath "${1:-build/extisolate}")
python=${2:-/usr/bin/python3}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

bold='' dim='' off=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'
fi

title() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
show() { # the command as one would type it, then its output
    local words=("$@")
    printf '%s$ extisolate' "$dim"
    printf ' %s' "${words[@]//$tmp\//}"
    printf '%s\n' "$off"
    (cd "$tmp" && "$extisolate" "${words[@]//$tmp\//}") | sed "s|$tmp/||g; s/^/  /"
}

numpy=$("$python" -c 'import numpy.core._multiarray_umath as m; print(m.__file__)')

title "1. Two private copies of ${numpy##*/}"
show copy "$numpy" "$tmp/ctx0"
show copy "$numpy" "$tmp/ctx1"

title "2. What changed: the copies have their own names and their own libpython"
facts() { # NAME FILE: the lines of inspect that a copy may change
    "$extisolate" inspect --json "$2" | "$python" -c '
import json, sys
d = json.load(sys.stdin)[0]
print("file", sys.argv[1].rsplit("/", 1)[-1])
print("id", d.get("id") or "-")
for n in d.get("needed") or ["-"]:
    print("needed", n)
print("runpath", d.get("runpath") or "-")
' "$2" | sed "s|$tmp/||g" >"$tmp/$1"
}
for c in 0 1; do
    copies=("$tmp/ctx$c"/*_multiarray_umath*.so)
    facts "copy$c" "${copies[0]}"
done
facts original "$numpy"
"$python" - "$tmp" "$bold" "$off" <<'PY'
import itertools, sys
tmp, bold, off = sys.argv[1:]
columns = []
for name in ("original", "copy0", "copy1"):
    rows = [line.rstrip("\n").split(" ", 1) for line in open(f"{tmp}/{name}")]
    columns.append({k: [v for _, v in g] for k, g in itertools.groupby(rows, lambda r: r[0])})
def cell(text):
    return text if len(text) <= 44 else text[:20] + "..." + text[-21:]
table = []
for key in columns[0]:
    for i, row in enumerate(itertools.zip_longest(*(c.get(key, []) for c in columns), fillvalue="")):
        table.append([key if i == 0 else ""] + [cell(v) for v in row])
width = [max(len(r[i]) for r in table) for i in range(4)]
heads = ["", "original", "context 0", "context 1"]
width = [max(w, len(h)) for w, h in zip(width, heads)]
print("  " + bold + "  ".join(h.ljust(w) for h, w in zip(heads, width)).rstrip() + off)
for r in table:
    print("  " + "  ".join(v.ljust(w) for v, w in zip(r, width)).rstrip())
PY
show verify "$tmp/ctx0"
show verify "$tmp/ctx1"

title "3. The same program in one context and in two, in one process"
cat >"$tmp/work.py" <<'PY'
import sys, time
import numpy as np

def pure(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1000003
    return total

def arrays(rounds):
    a = np.random.default_rng(1).random(200_000)
    for _ in range(rounds):
        a = np.sort(np.sin(a) * np.sqrt(a + 1.0))[::-1]
    return float(a.sum())

def work():
    return pure(12_000_000), arrays(60)

if len(sys.argv) > 1 and sys.argv[1] == "threads":
    import threading
    both = [threading.Thread(target=work) for _ in range(2)]
    for t in both: t.start()
    for t in both: t.join()
else:
    work()

kb = {}
for path in ("/proc/self/smaps_rollup", "/proc/self/status"):
    for line in open(path):
        key, _, value = line.partition(":")
        if key in ("Pss", "VmRSS"):
            kb[key] = int(value.split()[0])
print("memory", kb["VmRSS"], kb["Pss"])
PY
sed 's/^/  /' <<'TEXT'
12 million turns of a pure Python loop, then sorting and sines over numpy arrays; BLAS on one thread.
TEXT
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

measure() { # LABEL PROGRAMS COMMAND...: appends "label|programs|seconds|rss|pss"
    local label=$1 programs=$2 from to
    shift 2
    [ ! -t 1 ] || printf '  %srunning: %s%s' "$dim" "$label" "$off"
    from=$(date +%s.%N)
    "$@" >"$tmp/out"
    to=$(date +%s.%N)
    [ ! -t 1 ] || printf '\r\e[K'
    awk -v label="$label" -v n="$programs" -v from="$from" -v to="$to" '
        $1 == "memory" { if ($2 > rss) rss = $2; if ($3 > pss) pss = $3 }
        END { printf "%s|%d|%.2f|%.1f|%.1f\n", label, n, to - from, rss / 1024, pss / 1024 }' \
        "$tmp/out" >>"$tmp/table"
}
run=("$extisolate" run --python "$python")
measure '1 context' 1 "${run[@]}" --contexts 1 "$tmp/work.py"
measure '2 contexts' 2 "${run[@]}" --contexts 2 "$tmp/work.py"
measure '2 threads of one python3' 2 "$python" "$tmp/work.py" threads

awk -F'|' -v bold="$bold" -v off="$off" '
    BEGIN { printf "\n  %s%-26s %8s %9s %9s %10s %10s%s\n", bold, "", "programs", "seconds", \
                "speed-up", "RSS MB", "Pss MB", off }
    NR == 1 { one = $3 }
    { printf "  %-26s %8d %9.2f %8.2fx %10.1f %10.1f\n", $1, $2, $3, $2 * one / $3, $4, $5 }
    END { print "\n  Wall time, start-up included; speed-up is over running the programs one after " \
                "the other."
          print "  Memory is that of the whole process, at the end of the work." }' "$tmp/table"
