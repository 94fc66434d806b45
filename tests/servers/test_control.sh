#!/bin/bash
# Tests the comparison: it must see another message, another order, another status, a late end, a process that is
# left, a wrong answer, and one that is listed and no longer differs.
set -u
# shellcheck source=tests/servers/lib.sh
. "$(dirname "$0")/lib.sh"
cat >"$tmp/program.py" <<'END'
import http.server, subprocess, sys, threading, time
what = sys.argv[1] if "extisolate" in sys.builtin_module_names else "nothing"
port = int(sys.argv[2])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"from %d" % (port + (what == "answer"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.handle_error = lambda *a: None  # clients that go away
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    if what == "process":
        subprocess.Popen(["sleep", "600"])
    if what in ("late", "stuck"):
        time.sleep(10)
    for line in ["b", "a"] if what == "order" else ["a", "b"]:
        print(line)
    if what == "message":
        print("c")
    sys.exit(3 if what == "status" else 2)
END
cat >"$tmp/control_cases.py" <<END
import cases
def control(what):
    return cases.script(what, (), "$tmp/program.py", what, "PORT", ends=("SIGINT",), load=what == "nothing",
                        stuck=9 * (what == "stuck"))
CASES = [control(w) for w in ("nothing", "message", "order", "status", "late", "stuck", "process", "answer", "listed")]
END
export EXTI_SERVERS_PYTHON=$system PYTHONPATH=$tmp:$here EXTI_SERVERS_CASES=control_cases
export EXTI_SERVERS_DIFFERENCES=$tmp/differences
: >"$tmp/differences"
says() { # CASE PATTERN
    $system "$here/drive.py" "$1" >"$tmp/said" 2>&1
    sed -n '/^[a-z]/,$p' "$tmp/said" | tr '\n' ' ' | grep -qE "^$2" && ok "control_$1" || not_ok "control_$1" "$(cat "$tmp/said")"
}
says nothing 'ok nothing-SIGINT'
says message 'not ok message-SIGINT .*said 4 times, not 0: c'
says order 'not ok order-SIGINT .*in another order'
says status 'not ok status-SIGINT .*status 3, not 2'
says late 'not ok late-SIGINT .*took 1[0-9.]* s to end'
says stuck 'not ok stuck-SIGINT .*took 1[0-9.]* s to end' # each time
says process "not ok process-SIGINT .*left processes: .*sleep 600"
says answer 'not ok answer-SIGINT .*port [0-9]* answered 200'
echo 'listed-* | always | it is said to differ' >"$tmp/differences"
says listed 'not ok listed-SIGINT: listed as different, but alike'
echo 'message-* | always | it is said to differ' >"$tmp/differences"
says message 'ok message-SIGINT: differs as listed'
