#!/bin/bash
# Links Mach-O files with everything that a page shift moves, for both architectures, and builds the
# loader for them on machines that run x86-64 code.
#
#   tests/unit/macho/macho_shift_inputs.sh DIR
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$1"

cat >libSystem.tbd <<'E'
--- !tapi-tbd
tbd-version:     4
targets:         [ x86_64-macos, arm64-macos ]
install-name:    '/usr/lib/libSystem.B.dylib'
exports:
  - targets:     [ x86_64-macos, arm64-macos ]
    symbols:     [ dyld_stub_binder, _malloc, _free, __tlv_bootstrap, __Unwind_Resume,
                   ___cxa_atexit ]
...
E
cat >libc++.tbd <<'E'
--- !tapi-tbd
tbd-version:     4
targets:         [ x86_64-macos, arm64-macos ]
install-name:    '/usr/lib/libc++.1.dylib'
exports:
  - targets:     [ x86_64-macos, arm64-macos ]
    symbols:     [ ___gxx_personality_v0, ___cxa_begin_catch, ___cxa_end_catch, ___cxa_throw,
                   ___cxa_allocate_exception, ___cxa_rethrow, __ZTIi, __ZSt9terminatev,
                   __ZTVN10__cxxabiv117__class_type_infoE,
                   __ZTVN10__cxxabiv120__si_class_type_infoE ]
    weak-symbols: [ __Znwm, __ZdlPv ]
...
E

# Exceptions, virtual calls, inline variables, thread-locals, a switch by jump table, constructors,
# pointers to data, past data and to the file's own Mach-O header.
cat >all.cpp <<'E'
extern "C" int api_call(int);
extern "C" int api_data;
extern "C" char __dso_handle;
struct Base {
    virtual int f(int) { return 1; }
    virtual ~Base() {}
};
struct Derived : Base {
    int f(int x) override { return x + 2; }
};
struct Guard {
    int *p;
    ~Guard() { ++*p; }
};
inline int counter = 40;
__thread int tls = 5;
__thread int tls_zero;
static int state = 3;
int *pointers[] = {&state, &counter, &api_data, nullptr, &state + 1000};
int zeros[70000];
static int *const const_ptr[] = {&state, &counter};
extern "C" void *header_slot = &__dso_handle;
extern "C" void *own_header() { return &__dso_handle; }
__attribute__((constructor)) static void init() { state += 4; }
__attribute__((noinline)) int thrower(int x) {
    Guard g{&state};
    if (x > 3)
        throw x;
    return api_call(x);
}
extern "C" int caught(int x) {
    try {
        return thrower(x);
    } catch (int e) {
        return -e;
    }
}
extern "C" int table(int x) {
    switch (x) {
    case 0: return api_call(9);
    case 1: return 5 * x;
    case 2: return tls++;
    case 3: return tls_zero;
    case 4: return state;
    case 5: return *pointers[x & 1] + *const_ptr[x & 1];
    case 6: return zeros[x];
    case 7: return 99;
    default: return -1;
    }
}
extern "C" int run(int x) {
    Base *b = x > 1 ? new Derived : new Base;
    int r = b->f(x);
    delete b;
    return r + table(x);
}
struct Global {
    int v;
    Global() : v(11) {}
    ~Global() { state = v; }
} global;
E

# Functions that need a DWARF entry each, to fill a regular page of __unwind_info.
functions() {
    local i
    echo .text
    for ((i = 0; i < 700; i++)); do
        printf '.globl _fn%d\n.p2align 2\n_fn%d:\n.cfi_startproc\n' $i $i
        ((i % 50 != 7)) ||
            printf '.cfi_personality 155, ___gxx_personality_v0\n.cfi_lsda 16, Lexc\n'
        if [ "$1" = x86_64 ]; then
            printf '.cfi_def_cfa_offset %d\nmovl $%d, %%eax\nretq\n' $((24 + i * 8)) $i
        else
            printf '.cfi_def_cfa_offset 48\nmov w0, #%d\n.cfi_offset x3, -8\nret\n' $i
        fi
        echo .cfi_endproc
    done
    printf '%s\n' '.data_region jt32' '.long 1' '.end_data_region' \
        '.section __TEXT,__gcc_except_tab' '.p2align 2' 'Lexc: .byte 255,255,1,0' \
        '.globl _absolute' '_absolute = 0x1234' .subsections_via_symbols
}

# Finds a variable through the file's own header, as getsectiondata does: returns 1 for a header,
# plus 10 if the variable's segment is at the right address.
cat >header.c <<'E'
typedef unsigned int u32;
typedef unsigned long u64;
struct header { u32 magic, cputype, subtype, filetype, ncmds, sizeofcmds, flags, reserved; };
struct segment { u32 cmd, cmdsize; char name[16]; u64 vmaddr, vmsize, fileoff, filesize; };
extern const struct header __dso_handle;
int variable = 5;
int find_header(void)
{
    const struct header *h = &__dso_handle;
    const char *p = (const char *)(h + 1);
    u64 slide = 0, at = (u64)&variable;
    int found = h->magic == 0xfeedfacf;
    for (u32 i = 0; i < h->ncmds; i++) {
        const struct segment *s = (const struct segment *)p;
        if (s->cmd == 0x19 && s->name[2] == 'T') {
            slide = (u64)h - s->vmaddr;
            if ((u64)find_header < (u64)h || (u64)find_header >= (u64)h + s->vmsize)
                found += 100;
        } else if (s->cmd == 0x19 && s->name[2] == 'D' && s->name[6] == 0) {
            if (at >= s->vmaddr + slide && at < s->vmaddr + slide + s->vmsize)
                found += 10;
        }
        p += s->cmdsize;
    }
    return found;
}
E

[ "$(uname -m)" != x86_64 ] ||
    (loader=$here/tests/macho_inputs/loader
        cc -iquote "$here" -I"$here/include" -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
            -O1 -o macho_load \
            "$loader"/{macho_load,file,fixups,trie,lookup,map,host,check,unwind}.c -lpthread)

for arch in x86_64 arm64; do
    clang -target $arch-apple-macos11 -O1 -g -fexceptions -std=c++17 -fPIC -c all.cpp -o all.o
    functions $arch >functions.s
    clang -target $arch-apple-macos11 -c functions.s -o functions.o
    clang -target $arch-apple-macos11 -O1 -fPIC -c header.c -o header.o
    link() {
        ld64.lld -arch $arch -platform_version macos 11.0 13.3 -undefined dynamic_lookup \
            -headerpad 0 libSystem.tbd libc++.tbd "$@"
    }
    link -bundle -no_fixup_chains all.o functions.o -o $arch.opcodes.so
    link -bundle -fixup_chains all.o functions.o -o $arch.chained.so
    link -dylib -install_name @rpath/x.dylib -init_offsets -fixup_chains all.o functions.o \
        -o $arch.offsets.dylib
    for fixups in chained opcodes; do
        [ $fixups = chained ] && flag=-fixup_chains || flag=-no_fixup_chains
        link -dylib -install_name @rpath/h.dylib $flag header.o -o $arch.header.$fixups.dylib
    done
done

