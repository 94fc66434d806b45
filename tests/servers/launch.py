"""Runs a program as python3 does, with what is this copy's own in the words of its command line.

launch.py -m MODULE ARG... | SCRIPT ARG...

PORT, INDEX, FOLDER, APPS and SOURCES in a word stand for a port, the copy's number, a folder that no other copy
has, that of the scripts, and that of packages' sources.
"""

import os
import runpy
import sys

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")


def number():
    try:
        import extisolate
    except ImportError:
        return int(os.environ["EXTI_SERVERS_INDEX"])
    return extisolate.index


def own(word, index, folder):
    port = int(os.environ["EXTI_SERVERS_PORT"]) + index
    names = {"PORT": str(port), "INDEX": str(index), "FOLDER": folder, "APPS": APPS,
             "SOURCES": os.environ.get("EXTI_SERVERS_SOURCES", "")}
    for name, value in names.items():
        word = word.replace(name, value)
    return word


def redirect(folder):
    """Standard output and input are the process's, and so are shared by the contexts."""
    if os.environ["EXTI_SERVERS_APART"]:
        sys.stdout = sys.stderr = open(os.path.join(folder, "said"), "a", buffering=1)
    if os.environ["EXTI_SERVERS_INPUT"]:
        sys.stdin = open(os.path.join(APPS, os.environ["EXTI_SERVERS_INPUT"]))


def main():
    index = number()
    folder = os.environ["EXTI_SERVERS_OWN"] = os.path.join(os.environ["EXTI_SERVERS_FOLDER"], "of-%d" % index)
    os.makedirs(folder)
    os.chdir(folder)
    redirect(folder)
    words = [own(word, index, folder) for word in sys.argv[1:]]
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        words[0] = os.path.join(APPS, words[0])
        sys.argv = words
        sys.path[0] = os.path.dirname(words[0])
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
