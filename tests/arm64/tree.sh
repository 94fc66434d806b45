#!/bin/bash
# Makes a Debian for arm64 of this machine's release, with what the tests need.  As root, and with an apt that
# can fetch packages of arm64.
#
#   tests/arm64/tree.sh TREE
#
# The packages are unpacked, and their scripts are not run.  Compilers are the machine's own cross compilers,
# which in_tree.sh puts before the tree's: those would be emulated.  A tree that is complete stays as it is.
set -eu
tree=$(realpath -m "$1")
state=$tree.apt
here=$(dirname "$0")
packages='base-files base-passwd bash coreutils dash sed grep mawk findutils diffutils tar gzip bzip2 xz-utils
perl-base util-linux procps file libc-bin hostname gcc g++ libc6-dev binutils make pkg-config libelf-dev
libjansson-dev nettle-dev libcmocka-dev libssl-dev patchelf elfutils jq mold dpkg libjemalloc2 locales tzdata
python3 python3-dev python3-venv python3-numpy python3-lxml libpython3-dev'
wanted=$(cksum "$here/tree.sh")
[ "$(cat "$tree/complete" 2>/dev/null)" != "$wanted" ] || exit 0

rm -rf "$tree" "$state"
mkdir -p "$tree" "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
apt() {
    apt-get -qq -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=0 \
        -o APT::Sandbox::User=root "$@"
}
apt update
# shellcheck disable=SC2086
apt --yes --download-only install $packages

# Debian's folders at the top are links into /usr, which a package would replace by folders.
mkdir -p "$tree"/{usr/{bin,sbin,lib},proc,sys,dev,tmp,etc,root,run,var/{tmp,lib/dpkg},lib64}
chmod 1777 "$tree/tmp" "$tree/var/tmp"
for d in bin sbin lib; do ln -s "usr/$d" "$tree/$d"; done
for p in "$state"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$p" | tar xp --keep-directory-symlink -C "$tree"
    dpkg-deb -f "$p" | sed '1a Status: install ok installed'
    echo
done >"$tree/var/lib/dpkg/status"

# What the scripts of packages would have done.
cp "$tree/usr/share/base-passwd/passwd.master" "$tree/etc/passwd"
cp "$tree/usr/share/base-passwd/group.master" "$tree/etc/group"
cp /etc/resolv.conf "$tree/etc/"
ln -sf mawk "$tree/usr/bin/awk"
for l in blas/libblas.so.3 lapack/liblapack.so.3; do
    [ ! -e "$tree/usr/lib/aarch64-linux-gnu/$l" ] || ln -sf "$l" "$tree/usr/lib/aarch64-linux-gnu/"
done
rm -rf "$state"
echo "$wanted" >"$tree/complete"
