#!/bin/bash
# A context directory that others can change is not loaded from, and copies that are not the recorded
# ones are made again.
# shellcheck disable=SC2086
. "$(dirname "$0")/lib.sh"
umask 022
chmod 755 "$tmp"
cd "$tmp" || exit 1

cat >planted.c <<'C'
#include <stdio.h>
__attribute__((constructor)) static void plant(void)
{
    FILE *f = fopen(PLANTED, "w");
    if (f)
        fclose(f);
}
C
cc -shared -fPIC -DPLANTED="\"$tmp/planted\"" -o planted.so planted.c || exit 1

# The module that the program imports: its copy is the one that gets replaced.
module=_ctypes
$system -c "import $module, sys; sys.exit(not getattr($module, '__file__', None))" ||
    { echo "skip trust: $module is no file of $system"; exit 0; }

# make DIR: a directory that holds the module's copy, used again and so with its hash.
make() {
    rm -rf "$1"
    $run --python $system --dir "$1" -c "import $module" &&
        $run --python $system --dir "$1" -c "import $module" || not_ok "made_$1" "the first runs failed"
}
copy_in() { ls "$1"/0/$module.*.so; }

# record DIR: writes size and times of the module's copy as they are now into the manifest, all that a
# stranger needs.
record() {
    $system - "$1/0" "$(basename "$(copy_in "$1")")" <<'P'
import json, os, sys
path = os.path.join(sys.argv[1], "manifest.json")
manifest = json.load(open(path))
entry = next(e for e in manifest["copies"] if e["copy"] == sys.argv[2])
st = os.stat(os.path.join(sys.argv[1], sys.argv[2]))
entry["copy_size"], entry["copy_mtime_ns"] = st.st_size, st.st_mtime_ns
for name, value in (("copy_inode", st.st_ino), ("copy_device", st.st_dev), ("copy_ctime_ns", st.st_ctime_ns)):
    if name in entry:
        entry[name] = value
json.dump(manifest, open(path, "w"))
P
}
plant() {
    cat planted.so >"$(copy_in "$1")"
    record "$1"
}

# try DIR [OPTION...]: runs the program; sets rc and said, and whether planted code has run.
try() {
    local dir=$1
    shift
    rm -f planted
    said=$($run --python $system --dir "$dir" "$@" -c "import $module" 2>&1)
    rc=$?
    ran=no
    [ ! -e planted ] || ran=yes
}
# refused NAME PATTERN: the last try said so, and ran no planted code.
refused() {
    if [ $rc != 0 ] && [ $ran = no ] && grep -qE -e "$2" <<<"$said"; then
        ok "$1"
    else
        not_ok "$1" "status $rc, planted code ran: $ran" "$said"
    fi
}
# healed NAME: the last try worked, and ran no planted code.
healed() {
    if [ $rc = 0 ] && [ $ran = no ]; then
        ok "$1"
    else
        not_ok "$1" "status $rc, planted code ran: $ran" "$said"
    fi
}

# ---- whose folder it is ----------------------------------------------------------

make own
try own
healed own_directory_is_believed

# What the tests stand on: with --trust-dir, the same planted module is loaded.
make group
plant group
chmod g+w group/0
chgrp 1 group/0 2>/dev/null || chmod o+w group/0
try group
refused folder_writable_by_others 'group/0: can be written by '
try group --trust-dir
[ $ran = yes ] && ok trust_dir_overrides || not_ok trust_dir_overrides "status $rc" "$said"

make above
plant above
chmod 777 above
try above
refused folder_above_writable_by_others 'above: can be written by everyone'
chmod 1777 above
rm -f planted
try above --trust-dir
chmod 755 above

mkdir sticky
chmod 1777 sticky
make sticky/own
try sticky/own
healed sticky_folder_above_is_believed

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    mkdir theirs
    chown 4711 theirs
    setpriv --reuid=4711 --regid=4711 --clear-groups --inh-caps=-all \
        $run --python $system --dir theirs/ctx -c "import $module" || not_ok a_stranger_makes_a_directory
    plant theirs/ctx
    chown -R 4711 theirs
    try theirs/ctx
    refused folder_above_of_another_owner "theirs: belongs to user 4711"
    mv theirs/ctx sticky/theirs
    try sticky/theirs
    refused folder_of_another_owner "sticky/theirs: belongs to user 4711"
    ln -s "$tmp/sticky/theirs" link
    try link
    refused link_to_a_folder_of_another_owner "sticky/theirs: belongs to user 4711"
    make behind
    ln -s "$tmp/behind" sticky/link
    chown -h 4711 sticky/link
    try sticky/link
    refused link_of_another_owner "sticky/link: belongs to user 4711"
    make manifest
    chown 4711 manifest/0/manifest.json
    try manifest
    refused manifest_of_another_owner "manifest/0/manifest.json: belongs to user 4711"
    make lock
    chown 4711 lock/0/.lock
    try lock
    refused lock_of_another_owner "lock/0/.lock: belongs to user 4711"
    make member
    plant member
    chown 4711 "$(copy_in member)"
    record member
    try member
    healed copy_of_another_owner_is_made_again
    make root
    chmod 755 "$tmp"
    rm -f planted
    said=$(setpriv --reuid=4711 --regid=4711 --clear-groups --inh-caps=-all \
        $run --python $system --dir root -c "import $module" 2>&1)
    rc=$? ran=no
    healed roots_directory_is_believed_by_others
else
    echo 'skip owners: only root can give files away, and setpriv(1) is needed'
fi

make manifest
chmod o+w manifest/0/manifest.json
try manifest
refused manifest_writable_by_others 'manifest/0/manifest.json: can be written by everyone'
make manifest
mv manifest/0/manifest.json elsewhere.json
ln -s "$tmp/elsewhere.json" manifest/0/manifest.json
try manifest
refused manifest_that_is_a_link 'manifest.json: '

# ---- copies ----------------------------------------------------------------------

make member
plant member
chmod o+w "$(copy_in member)"
record member
try member
healed copy_writable_by_others_is_made_again

make member
cp planted.so linked.so
ln -sf "$tmp/linked.so" "$(copy_in member)"
record member
try member
healed copy_that_is_a_link_is_made_again
cmp -s planted.so linked.so && ok file_behind_the_link_is_left_alone || not_ok file_behind_the_link_is_left_alone

# Same size, same mtime: only ctime and content tell.
make member
at=$(copy_in member)
touch -r "$at" stamp
size=$(stat -c %s "$at")
cat planted.so >"$at"
truncate -s "$size" "$at"
touch -r stamp "$at"
try member
healed copy_with_its_old_size_and_mtime_is_made_again

# An inode that another name has written through: the hash tells, wherever the folder is.
make member
touch -r "$(copy_in member)" stamp
ln "$(copy_in member)" other-name
cat planted.so >other-name
truncate -s "$size" other-name
touch -r stamp "$(copy_in member)"
try member
healed copy_written_through_a_hard_link_is_made_again

# ---- a folder that was moved -----------------------------------------------------

make moved
cp -a moved copied
inode=$(stat -c %i "$(copy_in copied)")
try copied
healed copied_folder_is_believed
[ "$(stat -c %i "$(copy_in copied)")" = "$inode" ] && ok its_copies_are_not_written_again ||
    not_ok its_copies_are_not_written_again
grep -q "\"copy_inode\": $inode" copied/0/manifest.json && ok its_new_identity_is_recorded ||
    not_ok its_new_identity_is_recorded
rm -rf copied
cp -a moved copied
at=$(copy_in copied)
touch -r "$at" stamp
cat planted.so >"$at"
truncate -s "$size" "$at"
touch -r stamp "$at"
$(dirname "$run" | sed 's/ .*//')/extisolate verify copied >verified 2>&1
[ $? = 1 ] && grep -q "$(basename "$at"): .*differs" verified && ok verify_reports_a_changed_copy ||
    not_ok verify_reports_a_changed_copy "$(cat verified)"
try copied
healed changed_copy_in_a_copied_folder_is_made_again

# A manifest of an earlier version has no identities: its copies are made again, once.
make old
$system - old/0/manifest.json <<'P'
import json, sys
manifest = json.load(open(sys.argv[1]))
for e in manifest["copies"] + [manifest["api"]]:
    for name in ("copy_inode", "copy_device", "copy_ctime_ns", "copy_sha256"):
        e.pop(name, None)
json.dump(manifest, open(sys.argv[1], "w"))
P
try old
healed manifest_without_identities_is_read
try old
healed manifest_with_new_identities_is_read
grep -q '"copy_inode": [1-9]' old/0/manifest.json && grep -q '"copy_sha256": "[0-9a-f]\{64\}"' old/0/manifest.json &&
    ok identities_are_added_to_it || not_ok identities_are_added_to_it
