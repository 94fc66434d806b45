"""The doctests of modules, run here on objects that are all in another interpreter.

python proxied_doctests.py MODULE...: prints a line for each example that ends as its author says at
home, but not by proxies, and how many did.
"""

import builtins
import doctest
import importlib
import io
import sys
import warnings

import extisolate
from extisolate import Proxy, _extisolate

PACKAGES = (
    "numpy",
    "pandas",
    "sklearn",
    "scipy",
    "collections",
    "fractions",
    "random",
    "heapq",
    "textwrap",
)


def show(value):
    """What the prompt prints of a value: of a proxy, the text of its object."""
    if value is not None:
        print(_extisolate.special(value, "__repr__") if isinstance(value, Proxy) else repr(value))


class Run:
    """Runs examples, with the packages of another interpreter, or with one's own."""

    def __init__(self, interp):
        self.interp = interp
        self.modules = {}

    def module(self, name):
        if name not in self.modules:
            self.modules[name] = self.interp.proxy(
                f"__import__('importlib').import_module({name!r})"
            )
        return self.modules[name]

    def imported(self, name, globals=None, locals=None, fromlist=(), level=0):
        if self.interp is None or name.split(".")[0] not in PACKAGES:
            return builtins.__import__(name, globals, locals, fromlist, level)
        self.module(name)
        for part in fromlist or ():
            if part != "*" and not hasattr(self.module(name), part):
                self.module(f"{name}.{part}")
        return self.module(name if fromlist else name.split(".")[0])

    def variables(self, module):
        """What doctest gives to the examples: the module's own names."""
        found = importlib.import_module(module)
        names = [n for n in vars(found) if not n.startswith("__")]
        of = found if self.interp is None else self.module(module)
        made = {}
        for name in names:
            try:
                made[name] = getattr(of, name)
            except AttributeError:
                continue
        made["np"], made["pd"] = (self.imported(n) for n in ("numpy", "pandas"))
        made["__builtins__"] = dict(vars(builtins), __import__=self.imported)
        made["__name__"] = "__main__"
        return made

    def results(self, test, variables):
        """Tell of each example whether it ended as it says."""
        ended = []

        class Runner(doctest.DocTestRunner):
            def report_success(self, out, test, example, got):
                ended.append((example, True, got))

            def report_failure(self, out, test, example, got):
                ended.append((example, False, got))

            def report_unexpected_exception(self, out, test, example, exc_info):
                ended.append(
                    (example, False, f"{exc_info[0].__name__}: {exc_info[1]}".splitlines()[0])
                )

        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
        test.globs = dict(variables)
        hook, sys.__displayhook__ = sys.__displayhook__, show  # doctest takes that one
        try:
            Runner(verbose=False, optionflags=flags).run(
                test, out=io.StringIO().write, clear_globs=False
            )
        finally:
            sys.__displayhook__ = hook
        return ended


def compare(name, interp):
    """Tell how many examples end alike, and of the others, which end well at home, the tests."""
    home, away = Run(None), Run(interp)
    own, others = home.variables(name), away.variables(name)
    alike, differ = 0, []
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name):
        if not test.examples:
            continue
        pairs = zip(home.results(test, own), away.results(test, others))
        for (example, at_home, _), (_, by_proxy, got) in pairs:
            alike += at_home and by_proxy
            if at_home and not by_proxy:
                differ.append((test.name.removeprefix(f"{name}."), example.source, got))
    return alike, differ


def main():
    warnings.simplefilter("ignore")
    with extisolate.create() as interp:
        interp.exec("import warnings\nwarnings.simplefilter('ignore')")
        for name in sys.argv[1:]:
            alike, differ = compare(name, interp)
            for test, source, got in differ:
                print(f"{name}: {test}: {source.strip()!r} gives {got.strip()[-100:]!r}")
            print(f"{name}: {alike} alike, {len(differ)} differ", flush=True)


if __name__ == "__main__":
    main()
