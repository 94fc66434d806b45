#!/bin/sh
# Prints how much of a COV=1 build the tests reached, per file and in total.  Writes each missed
# line to MISSED.
#
#   scripts/coverage.sh MISSED OBJECT...
set -eu

missed=$1
shift
gcov -t -r "$@" | awk -F: -v missed="$missed" '
    /^ *-: *0:Source:/ { file = $4; next }
    /^ *-:/ || file !~ /\.c$/ { next }
    { if (!(file in lines)) order[++files] = file; lines[file]++ }
    /^ *[#=]+:/ {
        gone[file]++
        sub(/^[^:]*: */, "")
        print file ":" $0 > missed
    }
    function line(of, n, bad) {
        printf "%6.1f %% of %5d, %4d missed  %s\n", n ? 100 * (n - bad) / n : 0, n, bad, of
    }
    END {
        printf "" > missed
        for (i = 1; i <= files; i++) {
            line(order[i], lines[order[i]], gone[order[i]])
            n += lines[order[i]]
            bad += gone[order[i]]
        }
        line("in all", n, bad)
    }'
