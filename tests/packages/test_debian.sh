#!/bin/bash
# The distribution's packages: see harness.py.  A package is skipped aloud where it is not installed;
# scripts/deps.sh packages installs them all.  EXTI_PACKAGES="h5py torch" for some.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3

if ! command -v dpkg-query >/dev/null || [ ! -x $python ]; then
    echo "skip debian: this system has no dpkg or no $python"
    exit 0
fi
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' | awk '$2 == "installed" { print $1 }')

names=()
for work in "$here"/work/*.py; do
    name=$(basename "$work" .py)
    [[ -z ${EXTI_PACKAGES:-} || " $EXTI_PACKAGES " = *" $name "* ]] || continue
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
