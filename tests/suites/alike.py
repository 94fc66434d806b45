"""Checks that tests have the same outcomes in two contexts at once as in the interpreter itself.

    alike.py LABEL PYTHON unittest|pytest ARG...    as for record.py

Compares a run in the interpreter with a run in two contexts, test by test.  Tests that differ and
are not in the list `differences` run again, both ways.  A test whose outcome varies in the
interpreter itself, or that differed only once, is reported by name and not counted.  Results are
lines for tests/run.sh.  EXTISOLATE is the program, EXTI_SUITES_TIME the time limit of a run in seconds.
"""

import collections
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXTS = 2
LIMIT = float(os.environ.get('EXTI_SUITES_TIME', '3000'))
Allowed = collections.namedtuple('Allowed', 'test when outcome reason used')


class Run:
    """One process, and after wait() the outcomes of its tests, per interpreter."""

    def __init__(self, work, python, command, contexts):
        self.out, self.count = os.path.join(work, 'out'), contexts or 1
        self.dir = os.path.join(work, 'cwd')
        os.makedirs(self.dir)
        env = dict(os.environ, EXTI_SUITES_COUNT=str(self.count), EXTI_SUITES_INDEX='0')
        program = [python]
        if contexts:
            program = [os.environ['EXTISOLATE'], 'run', '--contexts', str(contexts), '--prove',
                       '--python', python]
        self.log = open(os.path.join(work, 'log'), 'w+', errors='backslashreplace')
        self.process = subprocess.Popen(
            [*program, os.path.join(HERE, 'record.py'), self.out, *command], cwd=self.dir, env=env,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def wait(self):
        try:
            status = self.process.wait(LIMIT)
            self.end = f'status {status}' if status else None
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.end = f'{LIMIT:.0f} s were not enough'
        self.outcomes, self.why, underway = [], {}, []
        for i in range(self.count):
            outcomes, open_tests, done = {}, [], False
            for kind, *words in read(f'{self.out}.{i}'):
                if kind == 'start':
                    open_tests.append(words[0])
                elif kind == 'end':
                    open_tests.remove(words[0])
                    outcomes[words[0]] = words[1]
                    self.why[i, words[0]] = words[2]
                else:
                    done = True
            self.outcomes.append(outcomes)
            underway += open_tests
            if not done and not self.end:
                self.end = 'a record that breaks off'
        if self.end:
            self.log.seek(0)
            names = ', '.join(underway) or 'no test'
            said = ''.join(tail(f'{self.out}.log.{i}') for i in range(self.count))
            self.end += f' (underway: {names})\n{said}{self.log.read()[-3000:]}'
        return self


def read(path):
    try:
        with open(path, encoding='utf-8') as f:
            for line in f:
                if line.endswith('\n'):
                    yield json.loads(line)
    except FileNotFoundError:
        pass


def tail(path):
    """What a run has printed last; nothing if it did not come so far."""
    try:
        with open(path, encoding='utf-8', errors='backslashreplace') as f:
            return f.read()[-1500:]
    except FileNotFoundError:
        return ''


def allowed_differences(path):
    """Lines `TEST | always or sometimes | outcome in a context | reason`."""
    with open(path) as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                yield Allowed(*(word.strip() for word in line.split(' | ', 3)), [])


def result(word, label, text=''):
    first, *more = text.splitlines() or ['']
    print(f'{word} {label}' + (f': {first}' if first else ''))
    for line in more:
        print('    ' + line)


def both(work, python, command):
    """Makes the two runs at the same time."""
    runs = [Run(os.path.join(work, str(contexts)), python, command, contexts)
            for contexts in (0, CONTEXTS)]
    return [run.wait() for run in runs]


def different(plain, contexts):
    """Gives each test that differs, with its outcomes in the interpreter and in the contexts."""
    names = set().union(plain.outcomes[0], *contexts.outcomes)
    all_of = {name: [o.get(name, 'nothing') for o in plain.outcomes + contexts.outcomes]
              for name in sorted(names)}
    return {name: o for name, o in all_of.items() if len(set(o)) > 1}


def excuse(allowed, name, outcomes):
    """A test may be listed several times, with an outcome each."""
    listed = [a for a in allowed if fnmatch.fnmatchcase(name, a.test)]
    used = [a for a in listed if a.outcome in outcomes[1:]]
    if not used or not set(outcomes[1:]) <= {outcomes[0], *(a.outcome for a in used)}:
        return False
    used[0].used.append(name)
    return True


def stale(allowed, plain):
    """Gives the listed differences that no longer exist, if their tests ran."""
    for a in allowed:
        if a.when == 'always' and not a.used and fnmatch.filter(plain.outcomes[0], a.test):
            yield a


def tell(label, name, first, second, contexts):
    word = ['in the interpreter', *(f'in context {i}' for i in range(CONTEXTS))]
    said = ', '.join(f'{o} {w}' for o, w in zip(first, word))
    where = re.sub(r'[^\w.\[\]:-]+', '_', name)
    if second and second[0] != first[0]:
        result('skip', f'{label}-{where}',
               f'the interpreter itself says {first[0]}, then {second[0]}')
    elif second and len(set(second)) == 1:
        result('skip', f'{label}-{where}', f'{said}; alike when run again')
    else:
        why = next((contexts.why[i, name] for i in range(CONTEXTS)
                    if contexts.why.get((i, name)) and first[i + 1] != first[0]), '')
        result('not ok', f'{label}-{where}', f'{said}\n{why}')


def compare(label, python, command, work):
    allowed = list(allowed_differences(os.environ.get('EXTI_SUITES_DIFFERENCES') or
                                       os.path.join(HERE, 'differences')))
    plain, contexts = both(os.path.join(work, 'first'), python, command)
    if plain.end:
        result('skip', label, f'the interpreter itself: {plain.end}')
        return
    if contexts.end:
        result('not ok', label, f'the contexts: {contexts.end}')
        return
    if not plain.outcomes[0]:
        # Some modules of CPython's have doctests only, which are not run here.
        result('not ok' if any(contexts.outcomes) else 'skip', label, 'there are no tests')
        return
    first = {name: o for name, o in different(plain, contexts).items()
             if not excuse(allowed, name, o)}
    if first:
        again = both(os.path.join(work, 'again'), python, command)
        second = different(*again) if not any(run.end for run in again) else None
        for name, outcomes in first.items():
            agreed = [again[0].outcomes[0].get(name, 'nothing')] * 3
            tell(label, name, outcomes, None if second is None else second.get(name, agreed),
                 contexts)
    for a in stale(allowed, plain):
        result('not ok', f'{label}-{a.test}', f'listed as {a.outcome} in a context, but alike')
    counts = collections.Counter(plain.outcomes[0].values())
    excused = sum(len(a.used) for a in allowed)
    result('ok', label, f'{len(plain.outcomes[0]) - len(first) - excused} tests alike (' +
           ', '.join(f'{n} {outcome}' for outcome, n in sorted(counts.items())) + ')' +
           (f', {excused} differ as listed' if excused else ''))


def main():
    label, python, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        compare(label, python, command, work)


main()
