#!/bin/bash
# examples/java-objects: Python objects in Java and Java objects in Python, by JNI, on each JDK from 17 on that there
# is.  All of it runs under -Xcheck:jni, which must have nothing to say.  EXTI_ALL=1: a million objects each way, and
# threads at random for ten minutes; EXTI_JAVA_SECONDS says how long.
. "$(dirname "$0")/support.bash"
seconds=${EXTI_JAVA_SECONDS:-$([ -n "${EXTI_ALL:-}" ] && echo 600 || echo 4)}
objects=$([ -n "${EXTI_ALL:-}" ] && echo 1000000 || echo 20000)
config=$(dirname "$python")/python3-config

find_jdks() {
    local home version
    for home in ${JAVA_HOME:+"$JAVA_HOME"} /usr/lib/jvm/*; do
        version=$("$home/bin/javac" -version 2>/dev/null | awk '{ print $2 }')
        [ -z "$version" ] || [ ! -f "$home/include/jni.h" ] || ! at_least "$version" 17 || realpath "$home"
    done | sort -u
}

# A make that has started this one has a job server, which this script does not pass on.
build() { # HOME OUT FLAGS
    MAKEFLAGS='' make -s --no-print-directory -C examples/java-objects OUT="$2" JAVA_HOME="$1" PYTHON_CONFIG="$config" \
        CFLAGS="-O2 -g -Werror $3" >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ]
}

run() { # HOME OUT CLASS ARGUMENT...; prints to $tmp/out
    LD_LIBRARY_PATH=$lib "$1/bin/java" -Xmx1g -Xcheck:jni --enable-native-access=ALL-UNNAMED \
        -Djavaobjects.path="$2" -cp "$2/classes" "$3" "$python" "${@:4}" >"$tmp/out" 2>"$tmp/log"
}

results_of() { # STATUS NAME COUNT: what the program printed, of COUNT tests at least, with the JDK in each name
    sed -nE "s/^((not )?ok [a-z0-9_]+).*/\1_on_$number/p" "$tmp/out"
    [ "$1" = 0 ] && [ "$(grep -c '^ok ' "$tmp/out")" -ge "$3" ] && [ ! -s "$tmp/log" ] &&
        ! grep -qvE '^ok |: heap [0-9]+ MB' "$tmp/out"
    verdict "$2_on_$number"
}

mapfile -t jdks < <(find_jdks)
# shellcheck disable=SC2086
{
    [ ${#jdks[@]} != 0 ] || skip_all 'there is no JDK 17 or later with jni.h' java_objects
    [ -x "$config" ] || skip_all "there is no $config" java_objects
    "$python" -c 'import sysconfig; assert sysconfig.get_config_var("Py_ENABLE_SHARED")' 2>/dev/null ||
        skip_all "no shared libpython for $python" java_objects
}
make -s --no-print-directory install DESTDIR="$tmp/stage" PREFIX=/opt/exti >"$tmp/log" 2>&1 || cat "$tmp/log"
lib=$tmp/stage/opt/exti/lib
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/stage
for jdk in "${jdks[@]}"; do
    number=jdk$("$jdk/bin/javac" -version 2>&1 | sed -E 's/javac ([0-9]+).*/\1/')
    build "$jdk" "$tmp/$number" ''
    verdict "objects_build_without_a_warning_on_$number"
    run "$jdk" "$tmp/$number" ObjectsTest
    results_of $? objects_are_tested_without_a_warning 19
    run "$jdk" "$tmp/$number" LifeTest
    results_of $? lives_are_tested_without_a_warning 20
    run "$jdk" "$tmp/$number" Soak "$seconds" 8 "$objects"
    results_of $? objects_are_soaked_without_a_warning 3
done
# Nothing of it could be seen if a shell that is not handed out lived as well.
build "$jdk" "$tmp/control" -DLEAVE_OUT=500 &&
    ! run "$jdk" "$tmp/control" LifeTest control &&
    grep -q '^not ok objects_that_python_refers_to_live' "$tmp/out" && grep -q 'the Java object has died' "$tmp/out"
verdict one_shell_that_is_not_handed_out_is_noticed
