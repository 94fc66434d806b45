"""Runs a program as python3 does, with what is this context's own in the words of its command line.

launch.py -m MODULE ARG... | SCRIPT ARG...

PORT, INDEX and FOLDER in a word stand for a port, the context's number and a folder that no other context has.
"""

import os
import runpy
import sys


def number():
    try:
        import extisolate
    except ImportError:
        return 0
    return extisolate.index


def own(word, index):
    port = int(os.environ["EXTI_SERVERS_PORT"]) + index
    folder = os.path.join(os.environ["EXTI_SERVERS_FOLDER"], "of-%d" % index)
    os.makedirs(folder, exist_ok=True)
    return word.replace("PORT", str(port)).replace("INDEX", str(index)).replace("FOLDER", folder)


if __name__ == "__main__":
    words = [own(word, number()) for word in sys.argv[1:]]
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")
