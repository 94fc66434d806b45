"""Runs tests in the current interpreter or context and records the outcome of each.

    record.py OUT unittest NAME...    by unittest: modules, or single tests
    record.py OUT pytest ARG...       by pytest: its own arguments

OUT is absolute.  The lines of OUT.INDEX are JSON: ["start", ID], ["end", ID, OUTCOME, WHY], and ["done"] at the end.
INDEX is the context's index; in an interpreter EXTI_SUITES_INDEX gives it.  All EXTI_SUITES_COUNT
records start together, so that the tests run at the same time.  EXTI_SUITES_TESTS is a folder with
CPython's tests for interpreters that have none.
"""

import collections
import errno
import importlib
import json
import os
import sys
import time
import warnings

try:
    from extisolate import index
except ImportError:
    index = int(os.environ['EXTI_SUITES_INDEX'])
count = int(os.environ['EXTI_SUITES_COUNT'])


class Record:
    def __init__(self, path):
        self.file = open(path, 'wb', buffering=0)
        self.seen = collections.Counter()
        self.ids = {}

    def start(self, test, name):
        """Numbers tests that have the same name."""
        self.seen[name] += 1
        if self.seen[name] > 1:
            name += f' #{self.seen[name]}'
        self.ids[test] = name
        self.write('start', name)

    def end(self, test, outcome, why=''):
        self.write('end', self.ids.pop(test), outcome, str(why)[-4000:])

    def write(self, *words):
        line = (json.dumps(words) + '\n').encode()
        while line:
            try:
                line = line[self.file.write(line):]
            except OSError as error:
                # Limits are the process's: another context's test may have set RLIMIT_FSIZE.
                if error.errno != errno.EFBIG:
                    raise
                time.sleep(0.01)


def wait_for_others(path):
    open(f'{path}.ready.{index}', 'w').close()
    while not all(os.path.exists(f'{path}.ready.{i}') for i in range(count)):
        time.sleep(0.01)


def leave_vsock_out():
    """A machine whose AF_VSOCK does not lead back to itself has test_socket wait for ever."""
    import socket
    if not hasattr(socket, 'AF_VSOCK') or not os.path.exists('/dev/vsock'):
        return
    try:
        with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as server, \
                socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as client:
            server.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
            server.listen()
            client.settimeout(2)
            # IOCTL_VM_SOCKETS_GET_LOCAL_CID, as test_socket asks.
            import fcntl
            with open('/dev/vsock', 'rb') as device:
                cid = int.from_bytes(fcntl.ioctl(device, 0x7b9, bytes(4)), sys.byteorder)
            client.connect((cid, server.getsockname()[1]))
    except OSError:
        del socket.AF_VSOCK


def run_unittest(record, names):
    import unittest
    from test import support
    leave_vsock_out()
    more = os.environ.get('EXTI_SUITES_TESTS')
    if more:
        import ctypes
        ctypes.__path__.append(os.path.join(more, 'ctypes'))
    # The default of regrtest.
    support.use_resources = []

    class Result(unittest.TestResult):
        worst = None

        def startTest(self, test):
            super().startTest(test)
            self.worst = None
            record.start(test, test.id())

        def note(self, outcome, why=''):
            ranks = 'skip', 'xfail', 'xpass', 'fail', 'error'
            if self.worst is None or ranks.index(outcome) > ranks.index(self.worst[0]):
                self.worst = outcome, why

        def addError(self, test, err):
            # The set-up of a class or module failed.
            if test not in record.ids:
                record.start(test, test.id())
                record.end(test, 'error', self._exc_info_to_string(err, test))
                return
            self.note('error', self._exc_info_to_string(err, test))

        def addFailure(self, test, err):
            self.note('fail', self._exc_info_to_string(err, test))

        def addSkip(self, test, reason):
            if test not in record.ids:
                record.start(test, test.id())
                record.end(test, 'skip', reason)
                return
            self.note('skip', reason)

        def addExpectedFailure(self, test, err):
            self.note('xfail')

        def addUnexpectedSuccess(self, test):
            self.note('xpass')

        def addSubTest(self, test, subtest, err):
            if err is not None:
                failed = issubclass(err[0], test.failureException)
                self.note('fail' if failed else 'error',
                          str(subtest) + '\n' + self._exc_info_to_string(err, test))

        def stopTest(self, test):
            super().stopTest(test)
            # 3.12.1 calls stopTest for skipped tests that it never started.
            if test in record.ids:
                record.end(test, *(self.worst or ['pass']))

    result = Result()
    warnings.simplefilter('default')
    loaded = [load(record, name) for name in names]
    # A module's test_main runs its chosen tests with this function.
    support._run_suite = lambda suite: suite.run(result)
    wait_for_others(sys.argv[1])
    for run in loaded:
        run(result)


def load(record, name):
    """Older modules without load_tests have a test_main that sets up and chooses tests."""
    import unittest
    try:
        module = importlib.import_module(name)
    except unittest.SkipTest as why:
        record.start(name, name)
        record.end(name, 'skip', why)
        return lambda result: None
    if hasattr(module, 'test_main') and not hasattr(module, 'load_tests'):
        return lambda result: module.test_main()
    return unittest.defaultTestLoader.loadTestsFromModule(module).run


def run_pytest(record, args):
    import pytest

    class Plugin:
        worst = None

        def pytest_collection_finish(self):
            wait_for_others(sys.argv[1])

        def pytest_collectreport(self, report):
            if report.outcome != 'passed':
                record.start(report.nodeid, report.nodeid)
                record.end(report.nodeid, 'skip' if report.skipped else 'error', report.longrepr)

        def pytest_runtest_logstart(self, nodeid, location):
            record.start(nodeid, nodeid)
            self.worst = ['pass']

        def pytest_runtest_logreport(self, report):
            if report.outcome == 'passed':
                if hasattr(report, 'wasxfail'):
                    self.worst = ['xpass']
            elif report.outcome == 'skipped':
                self.worst = ['xfail' if hasattr(report, 'wasxfail') else 'skip', report.longrepr]
            else:
                self.worst = ['fail' if report.when == 'call' else 'error', report.longrepr]

        def pytest_runtest_logfinish(self, nodeid, location):
            record.end(nodeid, *self.worst)

    # Contexts share file descriptors.
    end = pytest.main(['-p', 'no:cacheprovider', '--capture=sys', '-q', '-q',
                       '--tb=short', f'--basetemp={sys.argv[1]}.tmp.{index}', *args],
                      plugins=[Plugin()])
    if end in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        raise SystemExit(f'pytest ended with {end!r}')


def main():
    out, how, *args = sys.argv[1:]
    record = Record(f'{out}.{index}')
    sys.stdout = sys.stderr = open(f'{out}.log.{index}', 'w', buffering=1, encoding='utf-8',
                                   errors='backslashreplace')
    # Tests of two processes would meet there, too.
    for name in 'cwd', 'temporary':
        os.mkdir(f'{out}.{name}.{index}')
    os.chdir(f'{out}.cwd.{index}')
    os.environ['TMPDIR'] = f'{out}.temporary.{index}'
    {'unittest': run_unittest, 'pytest': run_pytest}[how](record, args)
    record.write('done')
    record.file.close()


# Children of multiprocessing import this file, too.
if __name__ == '__main__':
    main()
