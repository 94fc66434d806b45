#!/bin/bash
# Of many contexts, those whose turn is far are not open yet; a signal that ends all ends them, too.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
# What is many goes by the processors.
run="taskset -c 0 $run"
many=24

# How many contexts have a libpython while the first one's program runs.
cat >count.py <<'PY'
import extisolate, re, time
if extisolate.index == 0:
    with open("/proc/self/maps") as maps:
        print("ok", len({m[1] for m in map(re.compile(r".*/(\d+)/libpython").match, maps) if m}))
PY
check many_contexts_run 0 timeout 300 $run --python $system --contexts $many count.py
open=$(sed 's/ok //' out)
[ "$open" -gt 1 ] && ok at_least_one_waits || not_ok at_least_one_waits "$open are open"
[ "$open" -lt $((many / 2)) ] && ok the_others_are_not_open || not_ok the_others_are_not_open "$open of $many are"
check as_many_run_while_they_have_their_copies 0 timeout 300 $run --python $system --contexts $many --dir copies count.py
check and_with_the_copies_there 0 timeout 300 $run --python $system --contexts $many --dir copies count.py

# Each runs until it is ended, and says how.
cat >stays.py <<'PY'
import extisolate, signal, sys, time
def begin():
    with open("begun", "a") as f:
        f.write(f"{extisolate.index}\n")
def until_ended(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
if sys.argv[1] == "handles":
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(0))
begin()
until_ended(float(sys.argv[2]))
PY

# ended SIGNAL WHAT SECONDS [OPTION...]: the signal arrives when the first program runs; sets rc.
ended() {
    local sig=$1 how=("$2" "$3") end=$((SECONDS + 120)) pid
    shift 3
    rm -f begun
    # A shell's background jobs ignore SIGINT.
    $system -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execvp(sys.argv[1], sys.argv[1:])' $run --python $system --contexts $many "$@" stays.py "${how[@]}" >out 2>err &
    pid=$!
    while [ ! -s begun ] && [ $SECONDS -lt $end ]; do sleep 0.01; done
    kill -"$sig" $pid
    wait $pid
    rc=$?
}
few_have_begun() { # NAME
    local n
    n=$(wc -l <begun)
    [ "$n" -gt 0 ] && [ "$n" -lt $((many / 2)) ] && ok "$1" || not_ok "$1" "$n of $many" "$(cat out err)"
}
has_status() { # NAME WANT
    [ $rc = "$2" ] && ok "$1" || not_ok "$1" "status $rc, not $2" "$(cat out err)"
}

ended INT runs 600
has_status an_interrupt_ends_all 130
few_have_begun an_interrupt_ends_those_that_are_not_open
[ "$(grep -c '^KeyboardInterrupt' err)" = "$(wc -l <begun)" ] && ok each_that_ran_has_said_so ||
    not_ok each_that_ran_has_said_so "$(cat begun err)"
# Whenever it comes: before contexts are open, while they are opened, while their interpreters start.
early=
for delay in 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4; do
    $system -c 'import signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
time.sleep(float(sys.argv[1]))
p.send_signal(signal.SIGINT)
print(p.wait(120))' $delay $run --python $system --contexts $many stays.py runs 600 >out 2>err || cat err
    early="$early $(tail -n 1 out)"
done
[ "$early" = ' -2 -2 -2 -2 -2 -2 -2 -2' ] && ok an_early_interrupt_ends_all || not_ok an_early_interrupt_ends_all "$early"

# As soon as there is a private directory, for which a helper is just being started.  On a busy machine it may come as
# late as CPython imports site, which fails then, as that of python3 does.
cat >interrupts.py <<'PY'
import os, signal, subprocess, sys, time
for _ in range(30):
    p = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    before = set(os.listdir("."))
    while set(os.listdir(".")) <= before:
        assert p.poll() is None
    p.send_signal(signal.SIGINT)
    print("ok" if p.wait(120) in (-signal.SIGINT, 1) else "status", p.returncode)
PY
mkdir made
check interrupts_as_the_directory_is_made 0 env --chdir=made TMPDIR="$tmp/made" $system "$tmp/interrupts.py" \
    $run --python $system -c 'import time; time.sleep(100)'
end=$((SECONDS + 60))
while [ -n "$(ls made)" ] && [ $SECONDS -lt $end ]; do sleep 0.1; done
[ -z "$(ls made)" ] && ok no_directory_stays || not_ok no_directory_stays "$(ls made)"

ended TERM runs 600
has_status a_signal_without_handler_ends_all 143
few_have_begun a_signal_without_handler_ends_those_that_are_not_open
[ -s err ] && not_ok and_says_nothing "$(cat err)" || ok and_says_nothing
ended TERM handles 600
has_status those_with_handlers_end_by_them 143
few_have_begun and_the_others_do_not_begin
(trap '' HUP; ended HUP runs 0.01; has_status an_ignored_signal_ends_none 0
[ "$(sort -u begun | wc -l)" = $many ] && ok and_all_have_begun || not_ok and_all_have_begun "$(cat begun err)")

ended INT runs 600 --prove --json
has_status a_proof_of_what_was_ended 130
$system - out <<'PY' && ok the_report_has_all || not_ok the_report_has_all "$(tail -n 5 out err)"
import json, sys
with open(sys.argv[1]) as f:
    results = json.load(f)
assert [r["status"] for r in results] == [130] * len(results) and len(results) == 24
unopened = [r for r in results if "before it began" in r.get("error", {}).get("message", "")]
assert len(results) / 2 < len(unopened) < len(results)
assert not any(r["proven"] for r in unopened)
PY
no_traces nothing_is_left
