/* Stand-ins for macOS's own libraries, with the functions that the inputs use. */
#include "tests/macho_inputs/loader/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stub_binder(void)
{
    die("dyld_stub_binder was called: dyld binds everything at once");
}

static void stack_check_failed(void)
{
    die("a stack canary was overwritten");
}

static void not_here(void)
{
    die("no exceptions can be thrown here");
}

static void pure_virtual(void)
{
    die("a pure virtual function was called");
}

static uintptr_t stack_guard = 0x5afe5afe5afe5afe;
/* Abstract class members: type information refers to them, but nothing calls them. */
static void *class_type_info[8], *si_class_type_info[8];

static int guard_acquire(uint8_t *guard)
{
    return !*guard;
}

static void guard_release(uint8_t *guard)
{
    *guard = 1;
}

static int at_exit(void (*f)(void *), void *arg, void *dso)
{
    (void)f;
    (void)arg;
    (void)dso;
    return 0;
}

/* A function's address as the table needs it. */
#define CODE(f) ((void *)(uintptr_t)(f))

static const struct host_symbol libsystem_symbols[] = {
    {"_malloc", CODE(malloc), false},
    {"_free", CODE(free), false},
    {"_strlen", CODE(strlen), false},
    {"_strcmp", CODE(strcmp), false},
    {"_memcpy", CODE(memcpy), false},
    {"_memset", CODE(memset), false},
    {"_abort", CODE(abort), false},
    {"_bzero", CODE(bzero), false},
    {"dyld_stub_binder", CODE(stub_binder), false},
    {"__tlv_bootstrap", CODE(tlv_bootstrap), false},
    {"___stack_chk_fail", CODE(stack_check_failed), false},
    {"___stack_chk_guard", &stack_guard, false},
    {"__Unwind_Resume", CODE(not_here), false},
    {NULL, NULL, false},
};

static const struct host_symbol libcxx_symbols[] = {
    {"__Znwm", CODE(malloc), true},
    {"__ZdlPv", CODE(free), true},
    {"__ZdlPvm", CODE(free), true},
    {"___cxa_guard_acquire", CODE(guard_acquire), false},
    {"___cxa_guard_release", CODE(guard_release), false},
    {"___cxa_atexit", CODE(at_exit), false},
    {"___cxa_begin_catch", CODE(not_here), false},
    {"___cxa_end_catch", CODE(not_here), false},
    {"___cxa_rethrow", CODE(not_here), false},
    {"___cxa_throw", CODE(not_here), false},
    {"___cxa_allocate_exception", CODE(not_here), false},
    {"___cxa_pure_virtual", CODE(pure_virtual), false},
    {"___gxx_personality_v0", CODE(not_here), false},
    {"__ZSt9terminatev", CODE(not_here), false},
    {"__ZTIi", class_type_info, true},
    {"__ZTVN10__cxxabiv117__class_type_infoE", class_type_info, false},
    {"__ZTVN10__cxxabiv120__si_class_type_infoE", si_class_type_info, false},
    {NULL, NULL, false},
};

struct image *system_library(const char *path)
{
    static struct image libraries[] = {
        {.path = "/usr/lib/libSystem.B.dylib", .host = libsystem_symbols},
        {.path = "/usr/lib/libc++.1.dylib", .host = libcxx_symbols, .weak_defines = true},
    };

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(libraries[i].path, path) == 0)
            return &libraries[i];
    return NULL;
}
