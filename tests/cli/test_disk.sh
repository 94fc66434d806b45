#!/bin/bash
# What the disk and other programs do to files: calls that fail, sources that change, folders that are linked, and
# commands that run at once.
. "$(dirname "$0")/support.bash"

python=$(command -v python3)
mapfile -t modules < <("$python" - <<'PY'
import glob, sysconfig
d = sysconfig.get_config_var("DESTSHARED")
print("\n".join(sorted(glob.glob(d + "/*.so"))))
PY
)
module=${modules[0]:-}
if [ -z "$module" ]; then
    skip disk "this Python has no extension modules in files"
    exit 0
fi

# The leak sanitizer does not work under strace.
no_leaks() { env ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" "$@"; }

# ---- a new folder that cannot be synced ----
if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
    skip failed_syncs_do_not_spoil_the_folder "strace does not work here"
else
    bad=0 failed=0
    for k in 1 2 3 4 5 6; do
        rm -rf ctx
        no_leaks strace -f -o /dev/null -P "$T/ctx" -e inject=fsync:error=EIO:when=$k "$EXTISOLATE" copy --sync \
            "$module" ctx >out 2>err </dev/null && continue
        failed=$((failed + 1))
        grep -q 'cannot sync folder: Input/output error' err || bad=1
        x copy --sync "$module" ctx >out 2>err && x verify ctx >out 2>err || bad=1
    done
    [ $failed -ge 3 ] || bad=1
    say $bad failed_syncs_do_not_spoil_the_folder "$failed runs failed"
fi

# ---- a limit on the size of files ----
rm -rf ctx
(
    ulimit -f 100
    "$EXTISOLATE" copy "$module" ctx >out 2>err </dev/null
)
rc=$?
check limit_on_file_size_is_reported 1 'File too large'
run copy "$module" ctx
check limit_on_file_size_leaves_no_bad_folder 0
rm -rf ctx
said=$(ulimit -f 0; "$EXTISOLATE" copy "$module" ctx 2>&1 >/dev/null </dev/null)
rc=$?
[ $rc = 1 ] && grep -q '/ctx: cannot write the lock file: File too large' <<<"$said"
say $? a_lock_file_that_cannot_be_written_is_named "status $rc: $said"

# ---- symbolic links ----
x copy "$module" real >out 2>err
ln -s real link
run clean link
check clean_of_a_link_says_what_is_gone 0 '^link: removed; the symbolic link to it stays$'
[ ! -e real ] && [ -L link ]
say $? clean_of_a_link_removes_the_directory
mkdir all
x copy "$module" all/1 >out 2>err
ln -sfn all link
run clean link
check clean_of_a_link_to_contexts 0 'link/1: removed$'
[ ! -e all ]
say $? clean_of_a_link_removes_the_directory_of_contexts
rm -f link

# ---- mounts ----
printf 'import %s\nprint("imported")\n' "$(basename "$module" | cut -d. -f1)" >app.py
mkdir noexec
if ! unshare -m true 2>/dev/null; then
    skip noexec_is_named "unshare -m does not work here"
    skip run_works_without_proc "unshare -m does not work here"
else
    TMPDIR=$T/noexec unshare -m sh -c 'mount -t tmpfs -o noexec none "$TMPDIR" && exec "$@"' sh \
        "$EXTISOLATE" run --python "$python" --contexts 1 app.py >out 2>err </dev/null
    rc=$?
    check noexec_is_named 1 'is mounted noexec, so nothing can be loaded from it; .* --dir, or by TMPDIR'
    if grep -aq __asan_init "$EXTISOLATE"; then
        skip run_works_without_proc "the address sanitizer needs /proc"
    else
        unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
            "$EXTISOLATE" run --python "$python" --contexts 2 app.py >out 2>err </dev/null
        rc=$?
        check run_works_without_proc 0 '^imported$'
        ! grep -q Traceback out err
        say $? no_traceback_without_proc
    fi
fi

# ---- verify beside copy ----
rm -rf ctx
x copy "$module" ctx >out 2>err
(
    for i in 1 2 3 4 5 6; do
        for m in "${modules[@]:1:12}"; do
            x copy "$m" ctx >/dev/null 2>&1
        done
        x clean ctx >/dev/null 2>&1
        x copy "$module" ctx >/dev/null 2>&1
    done
    touch done
) &
writer=$!
bad=0 n=0
while [ ! -e done ]; do
    x verify ctx >verified 2>&1
    n=$((n + 1))
    # While the directory is cleaned and made anew it may be no context.
    if grep -qE 'finding|differs|is not a copy|needs a copy' verified; then
        bad=1
        cp verified out
        break
    fi
done
kill $writer 2>/dev/null
wait $writer 2>/dev/null
say $bad verify_beside_copy_finds_nothing "$n runs"

finish
