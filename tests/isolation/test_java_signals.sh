#!/bin/sh
# The JVMs' own use of signals with contexts of CPython that use signals, too.
set -u
# shellcheck source=tests/isolation/host.sh
. tests/isolation/host.sh

# host NAME JDK
host()
{
    compile "$1.so" tests/isolation/host_signals.c -DIN_JAVA -I"$2/include" -I"$2/include/linux" -shared -fPIC \
        -L"$build" -lextisolate-python -Wl,--disable-new-dtags &&
        "$2/bin/javac" -XDignore.symbol.file -nowarn -d "$tmp/$1" tests/isolation/JavaSignals.java
}

# run NAME JDK ARGUMENT...: its output is in $tmp/log, its status in rc
run()
{
    name=$1 jdk=$2
    shift 2
    timeout 120 "$jdk/bin/java" -XX:-CreateCoredumpOnCrash -XX:ErrorFile="$tmp/crash" -cp "$tmp/$name" \
        JavaSignals "$tmp/$name.so" "$@" >"$tmp/log" 2>&1
    rc=$?
}

# verdict NAME GOOD
verdict()
{
    if [ "$2" = 1 ]; then
        echo "ok $1"
    else
        sed 's/^/# /' "$tmp/log" | head -n 40
        echo "not ok $1: status $rc"
    fi
}

found=
for jdk in /usr/lib/jvm/*; do
    [ ! -L "$jdk" ] && [ -x "$jdk/bin/javac" ] && [ -f "$jdk/include/jni.h" ] || continue
    version=$("$jdk/bin/javac" -version 2>&1 | sed 's/^javac \([0-9]*\).*/\1/')
    case " $found " in *" $version "*) continue ;; esac
    found="$found $version"
    if ! host "jdk$version" "$jdk" 2>"$tmp/log"; then
        rc=1
        verdict "jdk${version}_signals" 0
        continue
    fi
    run "jdk$version" "$jdk"
    verdict "jdk${version}_signals" $((rc == 143 && $(grep -c '^Java has had its signals$' "$tmp/log") == 1))
    run "jdk$version" "$jdk" share
    verdict "control_a_context_without_signals_takes_jdk${version}s" \
        $((rc == 1 && $(grep -c "with a context Java's handlers have run for: \[\]" "$tmp/log") == 1))
done
[ -n "$found" ] || echo "skip java_signals: there is no JDK"
