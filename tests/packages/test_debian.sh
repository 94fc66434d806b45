#!/bin/bash
# The distribution's packages: see harness.py.  A package that is not installed is reported as
# skipped; `scripts/deps.sh packages` installs them all.  Tests the packages in few.txt, or those
# named by EXTI_PACKAGES="h5py torch"; EXTI_PACKAGES=all tests all, which takes most of an hour.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3

if ! command -v dpkg-query >/dev/null || [ ! -x $python ]; then
    echo "skip debian: this system has no dpkg or no $python"
    exit 0
fi
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' |
    awk '$2 == "installed" { print $1 }')

wanted=${EXTI_PACKAGES:-$(tr '\n' ' ' <"$here/few.txt")}
names=()
for work in "$here"/work/*.py; do
    name=$(basename "$work" .py)
    [[ $wanted = all || " $wanted " = *" $name "* ]] || continue
    needs=$(sed -n 's/^# debian: //p' "$work")
    [ -n "$needs" ] || continue
    for p in $needs; do
        if ! grep -qxF "$p" <<<"$installed"; then
            echo "skip $name: $p is not installed (scripts/deps.sh packages)"
            continue 2
        fi
    done
    names+=("$name")
done
exec $python -B "$here/harness.py" debian $python "${names[@]}"
