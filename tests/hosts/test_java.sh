#!/bin/bash
# The host in Java: the library by java.lang.foreign, which JDK 22 and later have.
. "$(dirname "$0")/support.bash"
results='host_builds_without_a_warning host_calls_numpy_in_four_contexts
each_context_has_a_numpy_of_its_own host_reports_a_failure'

# The first bin folder with such a javac, with a slash at its end; systems have several JDKs beside each other.
find_jdk() {
    local bin version
    for bin in "${JAVA_HOME:+$JAVA_HOME/bin/}" "$(dirname "$(command -v javac)")/" /usr/lib/jvm/*/bin/; do
        version=$("${bin}javac" -version 2>/dev/null | awk '{ print $2 }')
        [ -n "$version" ] && at_least "$version" 22 && echo "$bin" && return
    done
    false
}

# shellcheck disable=SC2086
jdk=$(find_jdk) || skip_all 'there is no JDK 22 or later' $results

# Each call of C is one of the methods that -Xlint:restricted warns of.
"${jdk}javac" -Xlint:all,-restricted -Werror -d "$tmp" examples/java/Host.java 2>"$tmp/log"
verdict host_builds_without_a_warning
if can_run; then
    LD_LIBRARY_PATH=$build check_host memory "${jdk}java" --enable-native-access=ALL-UNNAMED -cp "$tmp" Host \
        "$build/libextisolate-python.so"
else
    # shellcheck disable=SC2086
    skip_all "no shared libpython or no numpy for $python" ${results#* }
fi
