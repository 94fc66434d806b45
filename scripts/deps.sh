#!/bin/bash
# Installs the Debian packages that are missing for the sets named: build, test, corpus, demo.
# Quick and silent when all are there.  Without apt-get or the right to use it, names them and stops.
set -eu

build='gcc libc6-dev binutils make pkg-config libelf-dev libjansson-dev nettle-dev'
demo='python3 python3-numpy libpython3-dev'
test="$demo libcmocka-dev libssl-dev g++ clang-16 lld-16 llvm-16 libclang-rt-16-dev bolt-16 mold patchelf elfutils
liblief-dev valgrind libjemalloc2 python3-dev python3-pip python3-venv bzip2 xz-utils jq man-db mandoc procps util-linux musl-tools
qemu-user gcc-i686-linux-gnu gcc-s390x-linux-gnu gcc-mips-linux-gnu gcc-aarch64-linux-gnu
gcc-riscv64-linux-gnu gcc-arm-linux-gnueabihf libc6-dev-i386-cross libc6-dev-s390x-cross
libc6-dev-mips-cross libc6-dev-arm64-cross libc6-dev-riscv64-cross libc6-dev-armhf-cross
gcc-mingw-w64-x86-64 gcc-mingw-w64-i686 python3-pefile wine64 osslsigncode"
corpus='python3-scipy python3-pandas python3-lxml python3-pil python3-matplotlib python3-cryptography
python3-h5py python3-psycopg2 python3-zmq python3-gevent'

wanted=
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    test) wanted="$wanted $test" ;;
    corpus) wanted="$wanted $corpus" ;;
    *) echo "usage: $0 [build] [test] [corpus] [demo]" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "This system has no dpkg: going on as if these were there, by their Debian names:" $wanted >&2
    exit 0
fi

missing=
# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | awk '$2 == "installed" { print $1 }') || :
for p in $wanted; do
    grep -qxF "$p" <<<"$have" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=sudo
    else
        echo "These packages are missing:$missing" >&2
        echo "Install them as root: apt-get install$missing" >&2
        exit 1
    fi
fi
command -v apt-get >/dev/null || { echo "These packages are missing:$missing" >&2; exit 1; }

echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -o DPkg::Lock::Timeout=120 update -qq
# shellcheck disable=SC2086
$as_root apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends $missing >/dev/null
