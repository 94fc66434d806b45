#!/bin/bash
# make demo: numpy's core extension in two contexts, then a CPU-bound script in one and in two.
#
#   scripts/demo.sh [EXTISOLATE [PYTHON]]
set -euo pipefail
export LC_ALL=C

extisolate=$(realpath "${1:-build/extisolate}")
python=${2:-/usr/bin/python3}
rounds=3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

bold='' dim='' off=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'
fi

# numpy 2 calls its folder _core.
numpy=$("$python" -c 'import numpy, sys
modules = (sys.modules.get(f"numpy.{core}._multiarray_umath") for core in ("_core", "core"))
print(next(m.__file__ for m in modules if m))')
core=${numpy%/*}
cd "$tmp"

title() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
short() { sed "s|$tmp/||g; s|$core/|\$CORE/|g"; }
show() { # prints the command as typed, then its output
    local word line=
    for word; do
        case $word in *' '*) word="'$word'" ;; esac
        line="$line $word"
    done
    printf '%s$ extisolate%s%s\n' "$dim" "$(short <<<"$line")" "$off"
    "$extisolate" "$@" 2>&1 | short | sed 's/^/  /'
}

title "1. Two private copies of numpy's core, each with a libpython of its own"
printf '  CORE=%s\n' "$core"
show copy "$numpy" ctx0
show copy "$numpy" ctx1

title '2. What is different in them'
facts() { # FILE: the lines of inspect that a copy may change
    "$extisolate" inspect --json "$1" | "$python" -c '
import json, sys
d = json.load(sys.stdin)[0]
print("id", d["id"] or "none")
for name in d["needed"] or ["none"]:
    print("needed", name)
print("runpath", d["runpath"] or "none")'
}
facts "$numpy" >original
for c in 0 1; do
    facts ctx$c/_multiarray_umath*.so >copy$c
done
"$python" - "$bold" "$off" <<'PY'
import itertools, sys
bold, off = sys.argv[1:]
columns = []
for name in ("original", "copy0", "copy1"):
    rows = (line.rstrip("\n").split(" ", 1) for line in open(name))
    columns.append({k: [v for _, v in g] for k, g in itertools.groupby(rows, lambda r: r[0])})

def cell(text):
    return text if len(text) <= 34 else text[:28] + "..." + text[-3:]

table = [["", "original", "context 0", "context 1"]]
for key in columns[0]:
    for i, row in enumerate(itertools.zip_longest(*(c[key] for c in columns), fillvalue="")):
        table.append([key if i == 0 else ""] + [cell(v) for v in row])
width = [max(len(row[i]) for row in table) for i in range(4)]
for n, row in enumerate(table):
    line = "  ".join(v.ljust(w) for v, w in zip(row, width)).rstrip()
    print("  " + (bold + line + off if n == 0 else line))
PY
show verify ctx0
show verify ctx1

title '3. Two CPythons in one process: does any reference leave its context?'
show run --contexts 2 --prove --python "$python" -c 'import numpy'

title '4. A CPU-bound program, alone and twice at once in one process'
cat >work.py <<'PY'
import sys, threading
import numpy as np

def work():
    total = 0
    for i in range(20_000_000):
        total = (total * 31 + i) % 1000003
    a = np.random.default_rng(1).random(200_000)
    for _ in range(100):
        a = np.sort(np.sin(a) * np.sqrt(a + 1.0))[::-1]
    return total, float(a.sum())

threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for t in threads:
    t.start()
for t in threads:
    t.join()

kb = {}
for path in ("/proc/self/smaps_rollup", "/proc/self/status"):
    for line in open(path):
        key, _, value = line.partition(":")
        if key in ("Pss", "VmRSS"):
            kb[key] = int(value.split()[0])
# By one call: with PYTHONUNBUFFERED print would mix its words with those of another context.
sys.stdout.write(f"memory {kb['VmRSS']} {kb['Pss']}\n")
PY
cat <<'TEXT'
  work.py: 20 million turns of a pure Python loop, then sorting, sines and roots of numpy arrays.
TEXT
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

measure() { # LABEL PROGRAMS COMMAND...: adds "label|programs|seconds|rss|pss" to the table
    local label=$1 programs=$2 from to
    shift 2
    [ ! -t 1 ] || printf '  %sround %s of %s: %s%s' "$dim" "$round" "$rounds" "$label" "$off"
    from=$(date +%s.%N)
    "$@" >out
    to=$(date +%s.%N)
    [ ! -t 1 ] || printf '\r\e[K'
    awk -v label="$label" -v n="$programs" -v from="$from" -v to="$to" '
        $1 == "memory" { seen++; if ($2 > rss) rss = $2; if ($3 > pss) pss = $3 }
        END { if (!seen) exit 1
              printf "%s|%d|%.3f|%.1f|%.1f\n", label, n, to - from, rss / 1024, pss / 1024 }' \
        out >>table
}
run=("$extisolate" run --python "$python")
for round in $(seq $rounds); do
    measure 'python3' 1 "$python" work.py 1
    measure 'python3, two threads' 2 "$python" work.py 2
    measure 'one context' 1 "${run[@]}" --contexts 1 work.py 1
    measure 'two contexts' 2 "${run[@]}" --contexts 2 work.py 1
done

sort -s -t'|' -k1,1 -k3,3n table | awk -F'|' -v bold="$bold" -v off="$off" -v rounds="$rounds" '
    { of[$1, ++n[$1]] = $0 } # by time, so that the middle one is the median
    function row(label, base,    f, t) {
        split(of[label, int((n[label] + 1) / 2)], f, "|")
        t = base ? base : f[3]
        printf "  %-22s %8d %9.2f %9.2fx %9.1f %9.1f\n", label, f[2], f[3], f[2] * t / f[3], f[4], f[5]
        return f[3]
    }
    END {
        printf "\n  %s%-22s %8s %9s %10s %9s %9s%s\n", bold, "", "programs", "seconds", "speed-up",
            "RSS MB", "Pss MB", off
        row("python3, two threads", row("python3"))
        row("two contexts", row("one context"))
        print "\n  Wall time with start-up, medians of " rounds ". Speed-up: over running the " \
            "programs one after the other."
        print "  Memory: of the whole process, at the end of the work."
    }'
