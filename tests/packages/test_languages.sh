#!/bin/bash
# A program opens a language's API library in 50 contexts, one after the other, where code takes signals:
# no handler is left behind, nor a file, the program's own are untouched, and SIGTERM does what they say.
# debian: libruby libphp-embed
set -u
# shellcheck source=tests/runtime/lib.sh
. "$(dirname "$0")/../runtime/lib.sh"
languages=${EXTI_BUILD:-$root/build}/tests/packages_languages
soname=$($system -c 'import sysconfig; print(sysconfig.get_config_var("INSTSONAME"))')

# The newest library of such a name that the system's loader finds.
library() { /sbin/ldconfig -p | sed -n "s|^[[:space:]]*$1 .*=> ||p" | sort -V | tail -n 1; }

for language in "python:$soname" 'ruby:libruby-[0-9.]*\.so\.[0-9.]*' 'php:libphp[0-9.]*\.so'; do
    name=${language%%:*} path=$(library "${language#*:}")
    if [ -z "$path" ]; then
        echo "skip $name: its library is not installed"
        continue
    fi
    check "$name-leaves-signals" 0 "$languages" "$name" "$path" 50
    [ ! -s "$tmp/out" ] || not_ok "$name-leaves-nothing" "$(cat "$tmp/out")"
    "$languages" "$name" "$path" 1 shared >"$tmp/out" 2>"$tmp/err"
    rc=$?
    [ $rc = 1 ] && grep -q '^signal 15: another action' "$tmp/out" && ok "control-$name-takes-the-programs" ||
        not_ok "control-$name-takes-the-programs" "status $rc" "$(tail -n 5 "$tmp/out" "$tmp/err")"
done
