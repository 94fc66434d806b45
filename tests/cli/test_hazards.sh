#!/bin/bash
# Hazards of Mach-O and PE files, compared with the imports that nm and objdump see.  Those of ELF files
# are in test_inspect.sh and in tests/api.
. "$(dirname "$0")/support.bash"

hazards() { # FILE: kind, outcome and evidence of each
    run inspect --json "$1"
    jq -r '.[0].hazards[] | "\(.kind) \(.outcome) (\(.evidence))"' out
}

# ---- Mach-O ----

cat >calls.c <<'C'
extern char sigaction[], pthread_key_create[], pthread_create[], atexit[], fork[], GOMP_parallel[];
char *calls[] = {sigaction, pthread_key_create, pthread_create, atexit, fork, GOMP_parallel};
/* What the headers of macOS make of some names. */
int setenv(void) __asm("_setenv$UNIX2003");
int call(void);
int call(void) { return setenv(); }
C
cat >own.c <<'C'
int sigaction(void);
int sigaction(void) { return 1; }
extern char posix_spawn[], abort[];
char *calls[] = {posix_spawn, abort};
C
macho() { # OUT SOURCE
    clang -target x86_64-apple-macos11 -fno-builtin -O1 -c -o "$1.o" "$2" &&
        ld64.lld -arch x86_64 -platform_version macos 11.0 11.0 -dylib -undefined dynamic_lookup \
            -install_name "/$1" -o "$1" "$1.o"
}
if command -v clang >/dev/null && command -v ld64.lld >/dev/null; then
    macho calls.dylib calls.c && macho own.dylib own.c || { echo 'not ok macho: not built'; exit 1; }
    hazards calls.dylib >got
    cat >want <<'TXT'
thread-keys limits-contexts (pthread_key_create)
threads matters-on-unload (pthread_create)
destructors matters-on-unload (atexit)
signals shared (sigaction)
fork shared (fork)
environment shared (setenv)
openmp shared (_GOMP_parallel)
TXT
    same macho_calls_are_found got want
    llvm-nm -u calls.dylib | grep -o '_[a-zA-Z].*' | sort >out
    printf '_%s\n' GOMP_parallel atexit fork pthread_create pthread_key_create 'setenv$UNIX2003' \
        sigaction >want
    grep -v '^_stub_binder$' out >got
    same macho_calls_are_nm_s got want
    hazards own.dylib >got
    : >want
    same macho_without_hazards got want

    inputs=$(dirname "$EXTISOLATE")/macho_inputs
    "$ROOT/tests/macho_inputs/build.sh" "$inputs" || { echo 'not ok inputs: they cannot be built'; exit 1; }
    weak=$inputs/x86_64/chained/weak.so
    if [ -f "$weak" ]; then
        hazards "$weak" >got
        grep -q '^unique-symbols cured-in-copies (_' got && [ "$(jq '.[0].hazards[0].count' out)" = \
            "$(llvm-nm -m "$weak" | grep -c '^0.* weak external ')" ]
        say $? weak_definitions_are_unique
        run inspect "$inputs/fat/chained/weak.so"
        [ "$(grep -c '^  hazards   unique-symbols: ' out)" = 2 ]
        say $? each_architecture_has_its_own
    else
        skip weak_definitions_are_unique "$(cat "$inputs"/*/*/*.skip 2>/dev/null | head -n 1)"
    fi
else
    skip macho 'there is no clang or ld64.lld'
fi

# ---- PE ----

cat >pe.c <<'C'
__declspec(dllimport) unsigned long TlsAlloc(void);
__declspec(dllimport) int SetCurrentDirectoryW(const void *);
__declspec(dllimport) void *CreateThread(void);
__declspec(dllimport) void *signal(int, void *);
__declspec(dllimport) unsigned long GetTickCount(void);
__declspec(dllexport) int use(void);
int use(void)
{
    return TlsAlloc() && SetCurrentDirectoryW(0) && CreateThread() && signal(1, 0) && GetTickCount();
}
C
cat >quiet.c <<'C'
__declspec(dllimport) unsigned long GetTickCount(void);
__declspec(dllexport) int fork(void);
int fork(void) { return (int)GetTickCount(); }
C
pe() { x86_64-w64-mingw32-gcc -shared -nostdlib -fno-builtin -Wl,-e,0 -o "$1" "$2" -lkernel32 -lmsvcrt; }
if command -v x86_64-w64-mingw32-gcc >/dev/null; then
    pe calls.dll pe.c && pe quiet.dll quiet.c || { echo 'not ok pe: not built'; exit 1; }
    hazards calls.dll >got
    cat >want <<'TXT'
thread-keys limits-contexts (TlsAlloc)
threads matters-on-unload (CreateThread)
signals shared (signal)
directory shared (SetCurrentDirectoryW)
TXT
    same pe_calls_are_found got want
    x86_64-w64-mingw32-objdump -p calls.dll >out
    sed -n 's/.*(\(.*\)).*/\1/p' got >names
    while read -r name; do grep -qw "$name" out || echo "$name"; done <names >missing
    [ "$(wc -l <names)" = 4 ] && [ ! -s missing ]
    say $? pe_calls_are_objdump_s
    hazards quiet.dll >got
    : >want
    same pe_without_hazards got want
else
    skip pe 'there is no x86_64-w64-mingw32-gcc'
fi
finish
