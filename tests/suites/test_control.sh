#!/bin/bash
# Tests the comparison: it must detect tests that differ, crash, hang, or no longer differ.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/suites/lib.sh"
has $system test.support || { echo "skip control: $system has no test.support"; exit 0; }
export PYTHONPATH=$tmp EXTI_SUITES_DIFFERENCES=$tmp/differences

# tests NAME: makes a test module from stdin and adds a test that always passes.
tests() {
    { printf 'import os, sys, time, unittest\ninside = "extisolate" in sys.modules\n'
        printf 'class T(unittest.TestCase):\n    def test_passes(self): pass\n'
        cat; } >"$tmp/$1.py"
    : >"$tmp/differences"
}

# says NAME PATTERN...: each pattern matches a line of the comparison, and no line is left over.
how=unittest
says() {
    local name=$1 pattern left
    shift
    # shellcheck disable=SC2086
    alike x $system $how "$name" >"$tmp/said" 2>&1
    left=$(grep -E '^(ok|not ok|skip) ' "$tmp/said")
    for pattern in "$@"; do
        if ! grep -qE "^$pattern" <<<"$left"; then
            not_ok "$name" "nothing says '$pattern':" "$(cat "$tmp/said")"
            return
        fi
        left=$(grep -vE "^$pattern" <<<"$left")
    done
    if [ -z "$left" ]; then
        ok "$name"
    else
        not_ok "$name" "it also says:" "$left"
    fi
}

tests passes </dev/null
says passes 'ok x: 1 tests alike'

tests fails_inside <<'END2'
    def test_differs(self): self.assertFalse(inside)
END2
says fails_inside 'not ok x-.*test_differs: pass in the interpreter, fail in context 0, fail in' \
    'ok x: 1 tests alike'

tests fails_in_one <<'END2'
    def test_differs(self):
        if inside:
            import extisolate
            self.assertEqual(extisolate.index, 0)
END2
says fails_in_one 'not ok x-.*test_differs: pass in the interpreter, pass in context 0, fail in' \
    'ok x: 1 tests alike'

tests skips_inside <<'END2'
    @unittest.skipIf(inside, 'inside')
    def test_differs(self): pass
END2
says skips_inside 'not ok x-.*test_differs: pass in the interpreter, skip' 'ok x: 1 tests alike'

tests lacking_inside <<'END2'
    if not inside:
        def test_lacking(self): pass
END2
says lacking_inside 'not ok x-.*test_lacking: pass in the interpreter, nothing in' \
    'ok x: 1 tests alike'

tests listed <<'END2'
    def test_differs(self): self.assertFalse(inside)
END2
echo 'listed.T.test_d* | always | fail | made to' >"$tmp/differences"
says listed 'ok x: 1 tests alike .*, 1 differ as listed'

tests listed_twice <<'END2'
    def test_differs(self):
        if inside:
            import extisolate
            self.assertEqual(extisolate.index, 0)
            raise ValueError
END2
printf 'listed_twice.T.test_d* | sometimes | %s | made to\n' fail error >"$tmp/differences"
says listed_twice 'ok x: 1 tests alike .*, 1 differ as listed'
echo 'listed.T.test_d* | always | error | made to' >"$tmp/differences"
says listed 'not ok x-.*test_differs' 'not ok x-.*: listed as error' 'ok x'

tests listed_in_vain </dev/null
echo '*test_passes | always | fail | no more' >"$tmp/differences"
says listed_in_vain 'not ok x-.*test_passes: listed as fail in a context, but alike' 'ok x'
echo '*test_passes | sometimes | fail | by chance' >"$tmp/differences"
says listed_in_vain 'ok x'

tests dies_inside <<'END2'
    def test_dies(self):
        if inside: os.abort()
END2
says dies_inside 'not ok x: the contexts: status .*underway: .*test_dies'

tests dies_itself <<'END2'
    def test_ends(self): inside or os._exit(3)
END2
says dies_itself 'skip x: the interpreter itself: status 3'

tests hangs_inside <<'END2'
    def test_hangs(self):
        while inside: time.sleep(1)
END2
EXTI_SUITES_TIME=60 says hangs_inside 'not ok x: the contexts: 60 s were not enough .*test_hangs'

# A test whose result varies in the interpreter itself, and a test that fails once in a context.
tests unsteady <<END2
    def first_time(self, what):
        try:
            os.mkdir('$tmp/' + what)
            return True
        except FileExistsError:
            return False
    def test_unsteady(self):
        self.assertFalse(not inside and self.first_time('unsteady'))
    def test_once(self):
        self.assertFalse(inside and self.first_time('once'))
END2
says unsteady 'skip x-.*test_unsteady: the interpreter itself says fail, then pass' \
    'skip x-.*test_once: .*alike when run again' 'ok x: 1 tests alike'

# pytest that does not begin is no suite without tests.
if has $system pytest; then
    how='pytest --no-such-option' says pytest_fails 'skip x: the interpreter itself: status 1'
fi
