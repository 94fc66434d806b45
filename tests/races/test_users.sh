#!/bin/bash
# Root and an unprivileged user at the same time: in directories of their own, and in one that both may change.  For a
# third of EXTI_RACE_SECONDS.
. "$(dirname "$0")/../cli/support.bash"
. "$ROOT/tests/faults/tree.bash"
if [ "$(id -u)" != 0 ] || ! setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
    skip two_users 'this needs root and setpriv'
    exit
fi
make_faults_tree || { echo 'not ok tree: it cannot be built'; exit 1; }
for k in 1 2 3 4 5 6 7 8; do cp "$one" "tree/extra$k.so"; done
cp "$EXTISOLATE" extisolate
chmod 755 "$T" && chmod -R a+rX tree apidir extisolate
mkdir -m 755 root && mkdir -m 755 nobody && chown 65534:65534 nobody && mkdir -m 777 both both/ctx said && chmod 777 both both/ctx said
seconds=2
[ -z "${EXTI_ALL:-}" ] || seconds=8
[ -z "${EXTI_RACE_SECONDS:-}" ] || seconds=$((EXTI_RACE_SECONDS / 3 + 1))

# work OWN NUMBER: copies and verifies until the time is over; says what went wrong.
cat >work.sh <<'W'
own=$1 n=$2 end=$3 rounds=0
umask 022
while [ "$(date +%s)" -lt "$end" ]; do
    file=tree/extra$((RANDOM % 8 + 1)).so
    timeout 60 ./extisolate copy --trust-dir --libpython "$PWD/apidir/libpython3.11.so.1.0" "$file" both/ctx >"said/$own$n" 2>&1 ||
        { echo "both: $?"; cat "said/$own$n"; }
    grep -q "${file#tree/}" both/ctx/manifest.json || echo "both: $file is not in the manifest"
    timeout 60 ./extisolate verify both/ctx >"said/$own$n" 2>&1 || { echo "verify both: $?"; cat "said/$own$n"; }
    timeout 60 ./extisolate copy --libpython "$PWD/apidir/libpython3.11.so.1.0" "$file" "$own/ctx" >"said/$own$n" 2>&1 ||
        { echo "$own: $?"; cat "said/$own$n"; }
    timeout 60 ./extisolate verify root/ctx >"said/$own$n" 2>&1 || [ ! -e root/ctx/manifest.json ] || { echo "verify root: $?"; cat "said/$own$n"; }
    rounds=$((rounds + 1))
done
echo "rounds $rounds"
W
end=$(($(date +%s) + seconds))
for n in 1 2 3 4; do
    bash work.sh root $n $end >"out.root$n" 2>&1 &
    setpriv --reuid 65534 --regid 65534 --clear-groups bash work.sh nobody $n $end >"out.nobody$n" 2>&1 &
done
wait
cat out.* | grep -v '^rounds [1-9]' >out
: >err
[ ! -s out ] && [ "$(cat out.* | grep -c '^rounds [1-9]')" = 8 ]
say $? root_and_another_user_share_a_directory_that_both_trust "$seconds s"
run copy --libpython "$api" "$one" nobody/ctx
check the_directory_of_another_is_refused 1 nobody
run copy --libpython "$api" "$one" both/ctx
check and_so_is_the_shared_one_without_the_option 1 both
for user in root nobody; do
    [ -z "$(find "$user/ctx" ! -user "$user" -o -name '.exti-*')" ] && x verify "$user/ctx" >out
    say $? "what_${user}_made_is_its_own_and_sound"
done
finish
