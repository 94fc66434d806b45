"""Runs programs four times by themselves and in four contexts of one process, talks to them, ends them, and compares.

drive.py CASE...            with EXTI_SERVERS_PYTHON, EXTISOLATE; prints `ok`, `not ok` and `skip` lines

^C goes to the whole process group, as a terminal has it; SIGTERM to the process.  `differences` lists what may
differ and why.
"""

import fnmatch
import http.client
import importlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import alike

CASES = importlib.import_module(os.environ.get("EXTI_SERVERS_CASES", "cases")).CASES
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("EXTI_SERVERS_PYTHON", sys.executable)
PROGRAM = os.environ.get("EXTISOLATE", "build/extisolate")
COPIES = 4
PATIENCE = float(os.environ.get("EXTI_SERVERS_PATIENCE", "120"))
# How many seconds the contexts' servers are under load, before the first of the signals; else it is a short one.
LOAD = float(os.environ.get("EXTI_SERVERS_LOAD", "60" if os.environ.get("EXTI_ALL") else "2"))
SHORT = min(LOAD, 2)


class Failed(Exception):
    pass


# ---- a program -----------------------------------------------------------------------------------


def free_ports():
    """The first of so many that are free; below those that the system gives by itself."""
    for _ in range(200):
        base = random.randrange(15000, 32000)
        taken = []
        try:
            for port in range(base, base + COPIES):
                s = socket.socket()
                taken.append(s)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", port))
            return base
        except OSError:
            continue
        finally:
            for s in taken:
                s.close()
    raise Failed("no ports are free")


def others_in_session():
    """The processes that were started here, and have not left the session, with their command lines."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rpartition(")")[2].split()
            with open("/proc/%s/cmdline" % pid, errors="replace") as f:
                command = f.read().replace("\0", " ").strip()
        except OSError:
            continue
        if int(fields[3]) == os.getpid() and int(pid) != os.getpid() and fields[0] != "Z":
            found[int(pid)] = command
    return found


def kill_others():
    for pid in others_in_session():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


class Program:
    """One process: `copies` contexts, or the plain interpreter if that is 0.  `index` is its first copy's number."""

    def __init__(self, case, copies, index, ports, folder):
        command = [PYTHON]
        if copies:
            command = [PROGRAM, "run", "--contexts", str(copies), "--python", PYTHON]
        environment = dict(os.environ, EXTI_SERVERS_PORT=str(ports[0]), EXTI_SERVERS_FOLDER=folder,
                           EXTI_SERVERS_INDEX=str(index), EXTI_SERVERS_INPUT=case.input,
                           EXTI_SERVERS_APART="1" if case.apart else "",
                           PYTHONPATH=os.path.join(HERE, "apps"), PYTHONDONTWRITEBYTECODE="1", HOME=folder,
                           **case.environment)
        self.lines = []
        self.process = subprocess.Popen(
            command + [os.path.join(HERE, "launch.py"), *case.words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
            cwd=folder, process_group=0, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def signal(self, name):
        if name == "SIGINT":
            os.killpg(self.process.pid, signal.SIGINT)
        elif name:
            self.process.send_signal(getattr(signal, name))

    def join(self):
        self.process.wait()
        self.reader.join()


class Copies:
    """Four times the same: in one process, or each in its own."""

    def __init__(self, case, plain):
        self.case = case
        base = free_ports()
        self.ports = list(range(base, base + COPIES))
        self.folder = tempfile.mkdtemp(prefix="servers-")
        self.held = []      # connections
        self.requests = 0   # that were answered under load
        self.collided = False   # somebody else has taken a port meanwhile
        self.programs = [Program(case, 0 if plain else COPIES, index, self.ports, self.folder)
                         for index in range(COPIES if plain else 1)]

    def text(self):
        return "".join("".join(p.lines) for p in self.programs) + "".join(self.own())

    def own(self):
        """What each copy has written to its file."""
        texts = []
        for index in range(COPIES) if self.case.apart else ():
            try:
                with open(os.path.join(self.folder, "of-%d" % index, "said"), errors="replace") as f:
                    texts.append(f.read())
            except FileNotFoundError:
                texts.append("")
        return texts

    def wait_until(self, condition, what):
        """Polls; the condition may raise OSError for `not yet`."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException):
                pass
            for p in self.programs:
                if p.process.poll() is not None:
                    raise Failed("it ended with status %s before %s" % (p.process.returncode, what))
            if time.monotonic() > deadline:
                raise Failed("%s s were not enough for %s" % (PATIENCE, what))
            time.sleep(0.02)

    def left(self):
        """Waits for the processes that the programs have started; the command lines of those that do not end."""
        for _ in range(100):
            left = others_in_session()
            if not left:
                break
            time.sleep(0.1)
        return left.values()

    def wait_for_words(self, words, times):
        if words:
            self.wait_until(lambda: self.text().count(words) >= times, repr(words))

    def end_by(self, name):
        begun = time.monotonic()
        for _ in range(2 if self.case.again else 1):
            for p in self.programs:
                p.signal(name)
            self.wait_for_words(self.case.again, COPIES)
        try:
            statuses = {p.process.wait(max(1, begun + self.case.patience - time.monotonic())) for p in self.programs}
        except subprocess.TimeoutExpired:
            raise Failed("%s s were not enough to end" % self.case.patience) from None
        seconds = time.monotonic() - begun
        left = self.left()
        kill_others()
        for p in self.programs:
            p.join()
        racy = self.case.racy + (self.case.racy_at_int if name == "SIGINT" else ())
        said = [] if self.case.noisy else [alike.normal("".join(p.lines), self.ports, racy) for p in self.programs]
        own = [alike.normal(text, self.ports, racy) for text in self.own()]
        return alike.Run(said, own, statuses, seconds, left)

    def close(self):
        kill_others()
        for p in self.programs:
            p.join()
        for s in self.held:
            s.close()
        self.collided = "address already in use" in self.text().lower()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- talking to it -------------------------------------------------------------------------------


def get(connection, port):
    connection.request("GET", "/")
    answer = connection.getresponse()
    body = answer.read().decode()
    if answer.status != 200 or body != "from %d" % port:
        raise Failed("port %d answered %d, %r" % (port, answer.status, body[:200]))
    return True


def once(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        return get(connection, port)
    finally:
        connection.close()


def load_by_threads(ports, seconds):
    counts = []
    until = time.monotonic() + seconds

    def ask(port):
        try:
            while time.monotonic() < until:
                once(port)
                counts.append(1)
        except Exception as e:
            counts.append(Failed("port %d: %r" % (port, e)))

    threads = [threading.Thread(target=ask, args=(port,)) for port in ports for _ in "ab"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for wrong in filter(lambda c: isinstance(c, Failed), counts):
        raise wrong
    return sum(counts)


def load_by_wrk(ports, seconds):
    runs = [subprocess.Popen(["wrk", "-t1", "-c8", "-d%ds" % max(1, seconds), "http://127.0.0.1:%d/" % port],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for port in ports]
    said = [run.communicate()[0] for run in runs]
    counts = [int(n) for n in re.findall(r"(\d+) requests in", "".join(said))]
    if any(run.returncode for run in runs) or len(counts) < len(ports) or 0 in counts:
        raise Failed("under load: " + "".join(said))
    if "Socket errors" in "".join(said) or "Non-2xx" in "".join(said):
        raise Failed("under load: " + "".join(said))
    return sum(counts)


def load(ports, seconds):
    """All ports at once; how many requests were answered."""
    return load_by_wrk(ports, seconds) if shutil.which("wrk") else load_by_threads(ports, seconds)


def answer_all(ports):
    for port in ports:
        for _ in range(5):
            once(port)


def talk_by_http(copies, seconds):
    for port in copies.ports:
        copies.wait_until(lambda port=port: once(port), "an answer of port %d" % port)
    answer_all(copies.ports)
    if seconds:
        copies.requests = load(copies.ports, seconds)
    answer_all(copies.ports)  # what the load has left in queues is answered before
    time.sleep(0.1)           # whoever answers comes back from the call that does


def client(program, script, index):
    words = [PYTHON, os.path.join(HERE, "apps", script), str(program.ports[index]),
             os.path.join(program.folder, "of-%d" % index)]
    environment = dict(os.environ, PYTHONPATH=os.path.join(HERE, "apps"), HOME=program.folder)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                          cwd=program.folder, timeout=PATIENCE)
    if done.returncode:
        raise Failed("%s: %s" % (script, done.stdout[-2000:]))


def talk(program, seconds):
    case = program.case
    program.wait_for_words(case.ready, COPIES * case.ready_times)
    if case.client == "http":
        talk_by_http(program, case.load and seconds)
    elif case.client:
        for index in range(len(program.ports)):
            client(program, case.client, index)
    if case.holds:
        for port in program.ports:
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(b"GET /waits HTTP/1.1\r\nHost: localhost\r\n\r\n")
            program.held.append(s)
        answer_all(program.ports)  # what was sent before is seen by then


# ---- cases ---------------------------------------------------------------------------------------


def run_once(copies, plain, end, seconds):
    try:
        talk(copies, seconds)
        return copies.end_by(end)
    except Exception as e:
        if not isinstance(e, Failed):
            e = Failed(repr(e))
        raise Failed("%s: %s\n%s" % ("the plain program" if plain else "four contexts", e,
                                     copies.text()[-6000:])) from None
    finally:
        copies.close()


def run(case, plain, end, seconds, tries=4):
    copies = Copies(case, plain)
    try:
        result = run_once(copies, plain, end, seconds)
    except Failed:
        if tries == 1 or not copies.collided:
            raise
    else:
        if tries == 1 or not (copies.collided or 0 < case.stuck < result.seconds):
            return result, copies.requests
    return run(case, plain, end, seconds, tries - 1)


def differences():
    path = os.environ.get("EXTI_SERVERS_DIFFERENCES", os.path.join(HERE, "differences"))
    with open(path) as f:
        lines = [line.split("|") for line in f if line.strip() and not line.startswith("#")]
    return [(pattern.strip(), when.strip(), why.strip()) for pattern, when, why in lines]


def verdict(name, found, listed):
    if not found and (not listed or listed[0] == "sometimes"):
        return "ok " + name
    if not found:
        return "not ok %s: listed as different, but alike: %s" % (name, listed[1])
    if listed:
        return "ok %s: differs as listed: %s" % (name, listed[1])
    return "not ok %s\n    %s" % (name, "\n    ".join("\n".join(found).splitlines()))


def compare(case, end):
    name = case.name + ("-" + end if end else "")
    listed = next(((when, why) for pattern, when, why in differences() if fnmatch.fnmatchcase(name, pattern)), None)
    try:
        plain, _ = run(case, True, end, SHORT)
        if not end and plain.statuses != {case.status}:
            raise Failed("the plain program: status %s\n%s" % (alike.either(plain.statuses), plain.text()))
    except Failed as e:
        return verdict(name, [str(e)], None)
    try:
        contexts, requests = run(case, False, end, LOAD if end == case.ends[0] else SHORT)
        found = alike.faults(plain, contexts, case.ordered)
        print("    %s: %d requests, ended in %.1f s; the plain program in %.1f s" % (
            name, requests, contexts.seconds, plain.seconds))
    except Failed as e:
        found = [str(e)]
    return verdict(name, found, listed)


def main():
    for case in CASES:
        if any(fnmatch.fnmatchcase(case.name, wanted) for wanted in sys.argv[1:]):
            for end in case.ends:
                print(compare(case, end), flush=True)


def lead_session():
    """Runs this in a session of its own: what is in one session shares the processors with what is in others."""
    with subprocess.Popen([sys.executable, *sys.argv], start_new_session=True) as leader:
        try:
            return leader.wait()
        except KeyboardInterrupt:
            leader.send_signal(signal.SIGINT)
            return leader.wait()


if __name__ == "__main__":
    if os.getsid(0) != os.getpid():
        sys.exit(lead_session())
    main()
