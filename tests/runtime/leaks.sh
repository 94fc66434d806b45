#!/bin/bash
# Under the address sanitizer N contexts leak N times as much as the interpreter by itself.
# Elsewhere tests/lsan.supp may suppress these leaks and no others.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
program=${run% run}

asan=$(ldd "$program" | sed -n 's/.*libasan.so.* => \([^ ]*\).*/\1/p')
if [ -z "$asan" ]; then
    echo "skip leaks: the program has no shared run-time library of the address sanitizer"
    exit 0
fi
export ASAN_OPTIONS="$ASAN_OPTIONS:log_path=$tmp/report"

# leaked COMMAND...: prints "BYTES ALLOCATIONS" that the processes of the command have leaked
leaked() {
    rm -f report.*
    "$@" >/dev/null 2>err </dev/null
    cat report.* 2>/dev/null | awk '/^SUMMARY: .* leaked in/ { bytes += $3; n += $7 }
        END { print bytes + 0, n + 0 }'
}

# leaks_as_stock NAME EXE CONTEXTS CODE: allows a tenth more, since CPython 3.9 never frees the
# objects that ctypes refers to, and a context has more of them.  In all other cases the bytes are
# equal.
leaks_as_stock() {
    local want got
    want=$(LSAN_OPTIONS='' leaked env LD_PRELOAD="$asan" "$2" -c "$4")
    # shellcheck disable=SC2086
    got=$(LSAN_OPTIONS='' leaked $run --python "$2" --contexts "$3" -c "$4")
    if [ "${got% *}" -le $((${want% *} * $3 * 11 / 10)) ] &&
        [ "${got#* }" -le $((${want#* } * $3 * 11 / 10)) ]; then
        ok "$1 (${got% *} bytes in ${got#* } allocations)"
    else
        not_ok "$1" "$3 contexts leak $got, the interpreter by itself $want" "$(cat err report.*)"
    fi
}

for exe in $(pythons); do
    v=$(version "$exe")
    leaks_as_stock "$v-start_and_end" "$exe" 3 pass
    leaks_as_stock "$v-exception" "$exe" 3 1/0
    for modules in 'json, sqlite3, ctypes, decimal' numpy lxml.etree; do
        # All contexts share the libraries that lxml needs, and their leaks depend on the timing.
        [ "$modules" = lxml.etree ] && n=1 || n=3
        if has "$exe" "$modules"; then
            leaks_as_stock "$v-$(tr -d ' ' <<<"$modules")" "$exe" $n "import $modules"
        else
            echo "skip $v-$(tr -d ' ' <<<"$modules"): this interpreter lacks one of them"
        fi
    done
done

# The control: lsan.supp suppresses a leak of CPython's own, but not one of a callback of ours.
cat >libpython.c <<'END'
#include <stdlib.h>
void *volatile lost;
void leak_own(void);
void leak_own(void) { lost = malloc(300), lost = 0; }
void call_back(void (*f)(void));
void call_back(void (*f)(void)) { f(); __asm__(""); }
END
cat >host.c <<'END'
#include <stdlib.h>
#include <string.h>
void leak_own(void);
void call_back(void (*f)(void));
static void *volatile lost;
static void leak_ours(void) { lost = malloc(200), lost = 0; }
int main(int argc, char **argv)
{
    if (strcmp(argv[argc - 1], "own") == 0)
        leak_own();
    else
        call_back(leak_ours);
    return 0;
}
END
if ! { gcc -shared -fPIC -g -o libpython3.0.so libpython.c &&
    gcc -g -fsanitize=address -o host host.c ./libpython3.0.so; } 2>err; then
    echo "skip control: $(head -n 1 err)"
    exit 0
fi
LSAN_OPTIONS="suppressions='$root/tests/lsan.supp':print_suppressions=0"
export LSAN_OPTIONS
[ "$(leaked ./host own)" = '0 0' ] && ok leak_of_the_interpreter_is_suppressed ||
    not_ok leak_of_the_interpreter_is_suppressed "$(cat report.*)"
[ "$(leaked ./host ours)" = '200 1' ] && ok leak_of_a_callback_is_not_suppressed ||
    not_ok leak_of_a_callback_is_not_suppressed "$(cat err report.*)"
