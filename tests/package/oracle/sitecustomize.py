"""Gives CPython's own tests the package under the names of the modules that it stands in for."""

import importlib
import importlib.machinery
import sys

STANDS_FOR = {
    "concurrent.interpreters": "extisolate",
    "concurrent.interpreters._queues": "extisolate._queues",
    "concurrent.futures.interpreter": "extisolate._pool",
}


class Loader:
    def __init__(self, name):
        self.name = name

    def create_module(self, _):
        module = importlib.import_module(self.name)
        if self.name == "extisolate":
            module._queues.create = module.create_queue  # by which the tests know it
        # The import system is to leave the module's own description alone.
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec


class Finder:
    def find_spec(self, name, *_):
        if name not in STANDS_FOR:
            return None
        return importlib.machinery.ModuleSpec(name, Loader(STANDS_FOR[name]), is_package=name.endswith("interpreters"))


sys.meta_path.insert(0, Finder())
