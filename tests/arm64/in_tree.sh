#!/bin/bash
# Runs a command in the tree that tree.sh has made, emulated by qemu-user, in this folder.  As root.
#
#   tests/arm64/in_tree.sh TREE COMMAND [ARG]...
#
# What is mounted for that is mounted for this process alone, and so gone with it.  The kernel is told of the
# emulator once, under a name of this project's; who wants that undone writes -1 into the file
# /proc/sys/fs/binfmt_misc/extisolate-arm64.
set -eu
if [ "${IN_TREE_APART:-}" != "$$" ]; then
    IN_TREE_APART=$$ exec unshare --mount --propagation private "$0" "$@"
fi
tree=$(realpath "$1")
shift
registry=/proc/sys/fs/binfmt_misc

# F: the kernel opens the emulator now, as the tree has none.
register() {
    local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    [ -e $registry/register ] || mount -t binfmt_misc binfmt_misc $registry
    grep -qs '7f454c460201010000000000000000000200b700' $registry/* ||
        echo ":extisolate-arm64:M::$magic:$mask:$(command -v qemu-aarch64-static || command -v qemu-aarch64):F" \
            >$registry/register
}

# The machine's cross compilers run natively, by its own loader and libraries.
lend_compilers() {
    local d tool tools=$tree/opt/cross
    mkdir -p "$tools" "$tree"/usr/{lib/x86_64-linux-gnu,lib/gcc-cross,aarch64-linux-gnu,libexec/gcc-cross}
    cp -L /lib64/ld-linux-x86-64.so.2 "$tree/lib64/"
    for d in usr/lib/x86_64-linux-gnu usr/lib/gcc-cross usr/aarch64-linux-gnu usr/libexec/gcc-cross; do
        [ ! -d "/$d" ] || mount --bind -o ro "/$d" "$tree/$d"
    done
    for tool in /usr/bin/aarch64-linux-gnu-*; do
        cp -L "$tool" "$tree/usr/bin/"
        tool=${tool##*/}
        ln -sf "/usr/bin/$tool" "$tools/${tool#aarch64-linux-gnu-}"
    done
    ln -sf ld.mold "$tree/usr/bin/aarch64-linux-gnu-ld.mold"
    ln -sf gcc "$tools/cc"
    ln -sf g++ "$tools/c++"
}

register
lend_compilers
mount -t proc proc "$tree/proc"
mount -t sysfs sys "$tree/sys"
mount --bind /dev "$tree/dev"
mkdir -p "$tree$PWD"
mount --bind "$PWD" "$tree$PWD"
[ -e "$tree/etc/ld.so.cache" ] || chroot "$tree" /sbin/ldconfig
exec chroot "$tree" /usr/bin/env -i -C "$PWD" PATH=/opt/cross:/usr/sbin:/usr/bin HOME=/root LC_ALL=C.UTF-8 \
    EXTI_EMULATED=1 "$@"
