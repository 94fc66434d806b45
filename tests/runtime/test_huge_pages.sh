#!/bin/bash
# Where the system has huge pages, the arenas of contexts are made of them: of few, which stay, and of many, which are
# unloaded.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
# What is many goes by the processors.
run="taskset -c 0 $run"

[ -e /sys/kernel/mm/transparent_hugepage ] && [ -z "${EXTI_EMULATED:-}" ] ||
    { echo "skip arenas_are_of_huge_pages: the system has none to ask for"; exit; }

# How many of 10,000 objects lie where huge pages are asked for: see "hg" in proc_pid_smaps(5).
cat >count.py <<'END'
import bisect, extisolate, math, re
objects = [(i,) for i in range(10_000)]
areas = []
with open("/proc/self/smaps") as smaps:
    for line in smaps:
        if m := re.match(r"(\w+)-(\w+) ", line):
            area = int(m[1], 16), int(m[2], 16)
        elif line.startswith("VmFlags:") and " hg" in line:
            areas.append(area)
def within(at):
    i = bisect.bisect(areas, (at, math.inf))
    return i > 0 and at < areas[i - 1][1]
if extisolate.index == extisolate.count - 1:
    print("ok", sum(within(id(o)) for o in objects))
END
for n in 1 2 24; do
    check ${n}_contexts_run 0 timeout 300 $run --python $system --contexts $n count.py
    found=$(sed -n 's/^ok //p' out)
    [ "${found:-0}" -gt 9000 ] && ok objects_of_${n}_contexts_are_there ||
        not_ok objects_of_${n}_contexts_are_there "$found"
done
check without_arenas_they_run 0 env PYTHONMALLOC=malloc timeout 300 $run --python $system --contexts 1 count.py
found=$(sed -n 's/^ok //p' out)
[ "${found:-10000}" -eq 0 ] && ok control_others_are_not || not_ok control_others_are_not "$found"
