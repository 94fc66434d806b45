# Shared by the tests that close one context after the other.
# shellcheck shell=bash disable=SC2034
cycle=${EXTI_BUILD:-$root/build}/tests/cycle

# leaks.sh tests the interpreter's own leaks.  It recognises them by the library, which is unloaded
# here.  The sanitizer also keeps freed memory.
sanitized=
if grep -q __asan_init "$cycle"; then
    sanitized=yes
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    echo "skip memory_and_mappings: this is built with the address sanitizer"
fi

# cycles NAME MOST_KB FROM CYCLES [OPTION] EXE CODE: all cycles end with status 0 and leave nothing
# mapped.  From cycle FROM to the last one the process grows by at most MOST_KB in a cycle, and by
# no file descriptor or thread-specific key.
cycles() {
    local name=$1 most=$2 from=$3 rc why
    shift 3
    timeout 1800 "$cycle" "$@" >out 2>err </dev/null
    rc=$?
    why=$(grep '^cycle' out | awk -v most="${sanitized:+99}$most" \
        -v maps_most="8${sanitized:+999}" -v from="$from" '
        $4 != 0 || $6 != 0 { print "status or left: " $0 }
        $2 == from { rss = $8; maps = $10; fds = $12; keys = $14; n = NR }
        { rss_last = $8; maps_last = $10; fds_last = $12; keys_last = $14 }
        END {
            if (NR <= n) print "only " NR " cycles"
            else if (rss_last - rss > most * (NR - n)) print "memory: " rss " KB, then " rss_last
            if (maps_last > maps + maps_most) print "mappings: " maps ", then " maps_last
            if (fds_last != fds) print "descriptors: " fds ", then " fds_last
            if (keys_last != keys) print "keys: " keys ", then " keys_last
        }')
    if [ $rc = 0 ] && [ -z "$why" ]; then
        ok "$name"
    else
        not_ok "$name" "status $rc" "$why" "$(tail -n 5 out err)"
    fi
}

stdlib='import ctypes, decimal, json, sqlite3, ssl, threading
assert sqlite3.connect(":memory:").execute("select 6 * 7").fetchone() == (42,)
assert decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
thread = threading.Thread(target=lambda: json.loads("[1]"))
thread.start()
thread.join()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(thread))'
