"""Builds the C library of the checkout that this is in, and the extension module on top of it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
BUILD = Path(os.environ.get("EXTISOLATE_BUILD", TOP / "build")).resolve()
# Of one interpreter: others may be built for at the same time.
OWN = BUILD / "python-package" / sys.implementation.cache_tag
OUR_LIBRARIES = ("libextisolate-python", "libextisolate-link", "libextisolate")
ABI3 = sys.version_info >= (3, 11)  # before, Py_buffer is not in the limited API

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(
        "extisolate gives each interpreter a GIL of its own; this is a free-threaded CPython, "
        "which needs none: use a build with the GIL"
    )


def version():
    header = (TOP / "include" / "extisolate.h").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^#define EXTI_VERSION_(\w+) (\d+)$", header, re.MULTILINE))
    return ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH"))


def needed(path):
    """The libraries that the file needs, by name, and where they are."""
    listed = subprocess.run(["ldd", str(path)], check=True, stdout=subprocess.PIPE, text=True)
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", listed.stdout, re.MULTILINE))


def make():
    """Builds what is not up to date, by the checkout's settings, not those of a make around."""
    ours = {
        k: v
        for k, v in os.environ.items()
        if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "SAN", "COV", "BUILD")
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "python-package.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            ["make", "-C", str(TOP), f"-j{os.cpu_count() or 1}", f"BUILD={BUILD}", "all"],
            check=True,
            stdout=sys.stderr,
            env=ours,
        )


class BuildExt(build_ext):
    """Puts the libraries, and those that they need, beside the extension module."""

    inside = ("libextisolate", "libelf", "libnettle")

    def run(self):
        make()
        self.copy(
            HERE / "src" / "extisolate" if self.inplace else Path(self.build_lib, "extisolate")
        )
        super().run()

    def strip(self, path, target):
        subprocess.run(["strip", "-s", "-o", str(target), str(path)], check=True)
        target.chmod(0o755)

    def copy(self, package):
        for folder in ("lib", "bin", "licenses"):
            shutil.rmtree(package / folder, ignore_errors=True)
            (package / folder).mkdir(parents=True)
        own = BUILD / "libextisolate-python.so"
        listed = {**needed(own), **needed(BUILD / "libextisolate.so")}
        listed.update({f"{name}.so.0": BUILD / f"{name}.so" for name in OUR_LIBRARIES})
        for name, path in listed.items():
            if name.startswith(self.inside):
                self.strip(path, package / "lib" / name)
        self.strip(BUILD / "extisolate", package / "bin" / "extisolate")
        shutil.copy(TOP / "LICENSE", package / "licenses" / "LICENSE")
        for folder in (HERE / "licenses", BUILD / "licenses"):
            for text in sorted(folder.glob("*")):
                shutil.copy(text, package / "licenses" / text.name)


(OWN / "egg").mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    cmdclass={"build_ext": BuildExt},
    ext_modules=[
        Extension(
            "extisolate._extisolate",
            sources=sorted(os.path.relpath(p, HERE) for p in (HERE / "ext").glob("*.c")),
            depends=sorted(os.path.relpath(p, HERE) for p in (HERE / "ext").glob("*.h")),
            include_dirs=[str(TOP / "include")],
            extra_compile_args=[
                "-std=c11",
                "-fvisibility=hidden",
                "-fno-plt",
                "-iquote",
                str(TOP),
                "-Wall",
                "-Wextra",
                "-Wshadow",
                "-Werror=implicit-function-declaration",
                *(["-Werror"] if os.environ.get("WERROR") else []),
            ],
            library_dirs=[str(BUILD)],
            libraries=[name[3:] for name in OUR_LIBRARIES],
            # Unlike a RUNPATH, this serves what the libraries need, too.
            extra_link_args=["-s", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib"],
            define_macros=[("_GNU_SOURCE", None)]
            + ([("Py_LIMITED_API", "0x030B0000")] if ABI3 else []),
            py_limited_api=ABI3,
        )
    ],
    options={
        "build": {"build_base": str(OWN)},
        "egg_info": {"egg_base": str(OWN / "egg")},
        **({"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {}),
    },
)
