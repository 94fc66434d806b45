#!/bin/bash
# Installs the missing Debian packages of the given sets: build, wheel, test, analyze, coverage, docs, corpus,
# packages, demo, pools, servers, arm64.
# Quick and silent if none is missing.  Without apt-get, or without the right to use it, names them
# and fails; but the set packages is optional, since tests of missing packages are skipped, and so is what
# this release does not have.
set -eu

build='gcc libc6-dev binutils make pkg-config libelf-dev libjansson-dev nettle-dev'
wheel='binutils make pkg-config python3-venv cmake m4 dpkg-dev bzip2 xz-utils'
demo='python3 python3-numpy libpython3-dev'
test="$demo libcmocka-dev libssl-dev g++ clang-LLVM lld-LLVM llvm-LLVM libclang-rt-LLVM-dev bolt-LLVM mold patchelf elfutils
valgrind libjemalloc2 python3-dev python3-pip python3-setuptools python3-venv
bzip2 xz-utils jq man-db mandoc procps util-linux musl-tools
qemu-user gcc-i686-linux-gnu gcc-s390x-linux-gnu gcc-mips-linux-gnu gcc-aarch64-linux-gnu
gcc-riscv64-linux-gnu gcc-arm-linux-gnueabihf libc6-dev-i386-cross libc6-dev-s390x-cross
libc6-dev-mips-cross libc6-dev-arm64-cross libc6-dev-riscv64-cross libc6-dev-armhf-cross
locales tzdata python3-pytest python3-hypothesis python3-joblib python3-cloudpickle
python3-tqdm python3-ipykernel python3-jupyter-client python3-dask python3-distributed gcc-mingw-w64-x86-64 gcc-mingw-w64-i686 python3-pefile wine64 osslsigncode
abigail-tools bindgen liblief-dev binutils-gold"
analyze='clang-tidy-LLVM cppcheck'
coverage='gcovr jq'
docs='python3-sphinx python3-myst-parser furo python3-dev python3-pip python3-setuptools'
pools="$demo python3-joblib python3-sklearn python3-pip python3-venv"
servers="$demo python3-fastapi python3-uvicorn python3-flask wrk"
arm64='qemu-user-static gcc-aarch64-linux-gnu g++-aarch64-linux-gnu'
corpus='python3-scipy python3-pandas python3-lxml python3-pil python3-matplotlib python3-cryptography
python3-h5py python3-psycopg2 python3-zmq python3-gevent'

# Each of these files names the packages that it needs.
packages() {
    sed -n 's/^# debian: //p' "$(dirname "$0")"/../tests/packages/{work/*.py,*.sh}
}

# The packages of LLVM have its version in their names: that of the tools that are here, or the oldest from 16
# on that there is.
llvm_version() {
    local folder
    folder=$("$(dirname "$0")/llvm.sh")
    folder=${folder#/usr/lib/llvm-}
    [ -z "$folder" ] || { echo "${folder%/bin}"; return; }
    apt-cache pkgnames bolt- 2>/dev/null | sed -n 's/^bolt-\([0-9]*\)$/\1/p' | sort -n | awk '$1 >= 16 { print; exit }'
}

wanted= optional=
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    wheel) wanted="$wanted $wheel" ;;
    demo) wanted="$wanted $demo" ;;
    pools) wanted="$wanted $pools" ;;
    servers) wanted="$wanted $servers" ;;
    test) wanted="$wanted $test" ;;
    analyze) wanted="$wanted $analyze" ;;
    coverage) wanted="$wanted $coverage" ;;
    docs) wanted="$wanted $docs" ;;
    arm64) wanted="$wanted $arm64" ;;
    corpus) wanted="$wanted $corpus" ;;
    packages) optional="$optional $(packages)" ;;
    *) echo "usage: $0 [build] [wheel] [test] [analyze] [coverage] [docs] [corpus] [packages] [demo] [pools] [servers] [arm64]" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "This system has no dpkg: going on as if these were there, by their Debian names:" $wanted >&2
    exit 0
fi

# For a name that only other packages provide apt-cache succeeds and shows nothing.
known() { apt-cache show "$1" 2>/dev/null | grep -q .; }

# LIEF's library for C is in Debian 12 only, and gold a package of its own from 13 on.  After 13 there is no
# compiler for MIPS, and wine was away for a time; the tests of these are skipped then.
drop_absent() {
    local p
    for p in liblief-dev binutils-gold gcc-mips-linux-gnu libc6-dev-mips-cross wine64; do
        case "$missing " in *" $p "*) ;; *) continue ;; esac
        # Without lists of packages nothing is absent yet.
        known "$p" || ! known gcc || missing=${missing/ $p/}
    done
}

llvm=$(llvm_version)
wanted=${wanted//LLVM/${llvm:-LLVM}}
missing=
# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted $optional 2>/dev/null | awk '$2 == "installed" { print $1 }') || :
for p in $wanted; do
    grep -qxF "$p" <<<"$have" || missing="$missing $p"
done
drop_absent
extra=
for p in $(tr ' ' '\n' <<<"$optional" | sort -u); do
    grep -qxF "$p" <<<"$have" || extra="$extra $p"
done
[ -n "$missing$extra" ] || exit 0

give_up() {
    echo "These packages are missing:$missing$extra" >&2
    [ $# = 0 ] || echo "$*$missing$extra" >&2
    [ -z "$missing" ] && exit 0
    exit 1
}

as_root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=sudo
    else
        give_up "Install them as root: apt-get install"
    fi
fi
command -v apt-get >/dev/null || give_up

export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -o DPkg::Lock::Timeout=120 update -qq
llvm=$(llvm_version)
missing=${missing//LLVM/${llvm:-16}}
drop_absent
for p in $extra; do
    # Other releases of the distribution lack some of these.
    if known "$p"; then
        missing="$missing $p"
    else
        echo "This distribution has no $p" >&2
    fi
done
[ -n "$missing" ] || exit 0
echo "Installing:$missing"
# shellcheck disable=SC2086
$as_root apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends $missing >/dev/null
