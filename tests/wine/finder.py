"""Imports the extension modules that a list names from the files it gives; the system's loader finds
what else they need in the folders that it is given.
"""

import importlib.machinery
import importlib.util
import os
import sys


class Finder:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.files = dict(line.rstrip("\n").split(" ", 1) for line in f)

    def find_spec(self, name, path=None, target=None):
        if name not in self.files:
            return None
        file = self.files[name]
        loader = importlib.machinery.ExtensionFileLoader(name, file)
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def install(path, *folders):
    sys.meta_path.insert(0, Finder(path))
    for folder in folders:
        os.add_dll_directory(folder)
