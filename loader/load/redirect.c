/* What a copy opens at run time goes through its context: its references to the loader's entry points
 * are bound to the functions here.  They find the context by the address they return to. */
#define _GNU_SOURCE /* RTLD_NEXT, RTLD_NOLOAD */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <link.h>
#endif

#include "base/mem.h"
#include "loader/interpose/iterate_phdr.h"
#include "loader/load/reference_target.h"
#include "loader/process/dl.h"
#include "loader/store/edits.h"
#include "loader/track/context_threads.h"
#include "loader/track/module.h"

/* ---- the functions that copies call ---- */

static void *loader_call(const char *symbol);

/* What dlerror is to say on this thread, once. */
static _Thread_local char last_error[sizeof(struct exti_error)];

static void note_error(const struct exti_error *err)
{
    snprintf(last_error, sizeof last_error, "%s%s%s", err->file, err->file[0] ? ": " : "",
             err->message);
}

static char *interposed_dlerror(void)
{
    static _Thread_local char text[sizeof last_error];

    if (!last_error[0])
        return dlerror();
    dlerror();
    memcpy(text, last_error, sizeof text);
    last_error[0] = 0;
    return text;
}

/* The module that called, if its context has an API to answer with: not while that is being opened, nor
 * when a hook has refused it. */
static bool find_caller(const void *address, struct exti_module *out)
{
    return exti__address_map_find((uintptr_t)address, out) && out->ctx->api;
}

static void *interposed_dlopen(const char *file, int mode)
{
    struct exti_error err = {0};
    struct exti_module m;
    void *handle;

    last_error[0] = 0;
    if (!find_caller(__builtin_return_address(0), &m))
        return dlopen(file, mode);
    handle = exti__copy_dlopen(&m, file, mode, &err);
    if (!handle && err.code)
        note_error(&err);
    return handle;
}

/* What the process has for all may be of a file that the context has a copy of. */
static void *own_instead(const struct exti_module *caller, const char *name, void *symbol)
{
    struct exti_ref_targets owners = {.ctx = caller->ctx};
    uintptr_t value = (uintptr_t)symbol, own = 0;
    const struct exti_reference ref = {.name = name, .slot = &value};
    const struct exti_ref_target *owner;

    if (!exti__ref_target_find(&owners, &ref, &owner, NULL) && owner)
        own = exti__ref_target_counterpart(owner, &caller->lib, &ref);
    exti__ref_targets_free(&owners);
    return own ? (void *)own : symbol;
}

/* RTLD_DEFAULT, and the API's handle, which stands for the whole program too: the API is the context's,
 * all else the process's first, so that an allocator put before the C library's stays there. */
static void *program_symbol(const struct exti_module *caller, void *scope, const char *name)
{
    const struct exti_module *api = caller->ctx->api;
    const char *private_name = exti__private_symbol_find(&caller->ctx->store.renames, name);
    void *p;

    if (exti__loaded_defines(&api->lib, private_name ? private_name : name))
        return dlsym(api->handle, private_name ? private_name : name);
    p = dlsym(RTLD_DEFAULT, name);
    return p ? own_instead(caller, name, p) : dlsym(scope, name);
}

static void *symbol_in(const struct exti_module *caller, void *handle, const char *name)
{
    const char *private_name;
    void *p;

    if (handle == RTLD_DEFAULT)
        return program_symbol(caller, caller->handle, name);
    if (handle == caller->ctx->api->handle)
        return program_symbol(caller, handle, name);
    private_name = exti__private_symbol_find(&caller->ctx->store.renames, name);
    p = private_name ? dlsym(handle, private_name) : NULL;
    return p ? p : dlsym(handle, name);
}

/* Of the nth library that the caller needs, or NULL. */
static void *needed_handle(const struct exti_module *caller, size_t n)
{
    struct exti_ctx *ctx = caller->ctx;
    const struct exti_module *m;
    void *handle;

    pthread_mutex_lock(&ctx->lock);
    for (m = ctx->modules; m && m->handle != caller->handle; m = m->older)
        ;
    handle = m && n < m->needed_count ? m->needed[n]->handle : NULL;
    pthread_mutex_unlock(&ctx->lock);
    return handle;
}

/* RTLD_NEXT goes by who calls, which is this here: what comes after the caller is what it needs. */
static void *symbol_behind(const struct exti_module *caller, const char *name)
{
    struct exti_module owner;
    void *p = symbol_in(caller, caller->handle, name), *handle;

    if (p && (!exti__address_map_find((uintptr_t)p, &owner) || owner.handle != caller->handle))
        return p;
    for (size_t i = 0; (handle = needed_handle(caller, i)); i++) {
        p = symbol_in(caller, handle, name);
        if (p)
            return p;
    }
    return dlsym(RTLD_NEXT, name);
}

static void *interposed_dlsym(void *handle, const char *name)
{
    struct exti_module m, owner;
    void *p, *own;

    last_error[0] = 0;
    if (!find_caller(__builtin_return_address(0), &m))
        return dlsym(handle, name);
    p = handle == RTLD_NEXT ? symbol_behind(&m, name) : symbol_in(&m, handle, name);
    if (!p || exti__address_map_find((uintptr_t)p, &owner))
        return p;
    own = exti__iterate_phdr_for(m.ctx, name);
    if (!own)
        own = loader_call(name);
    return own ? own : p;
}

static int interposed_dlclose(void *handle)
{
    struct exti_module caller, *m;
    struct exti_error err = {0};

    last_error[0] = 0;
    if (!find_caller(__builtin_return_address(0), &caller))
        return dlclose(handle);
    if (handle == caller.ctx->api->handle)
        return 0;
    pthread_mutex_lock(&caller.ctx->lock);
    for (m = caller.ctx->modules; m && m->handle != handle; m = m->older)
        ;
    pthread_mutex_unlock(&caller.ctx->lock);
    /* A finaliser's handle may be of a module that the context has closed before. */
    if (!m)
        return caller.ctx->closing ? 0 : dlclose(handle);
    if (!exti_close(m, &err))
        return 0;
    note_error(&err);
    return -1;
}

/* ---- where a copy seems to lie ---- */

/* Packages look for their data beside the library that some address of theirs is in, which has it beside
 * its original. */
static int describe_address(const struct exti_module *caller, const void *address, int found,
                            Dl_info *info)
{
    struct exti_module m;

    if (!found || !exti__address_map_find((uintptr_t)address, &m) || m.ctx != caller->ctx)
        return found;
    info->dli_fname = m.original;
    if (info->dli_sname)
        info->dli_sname = exti__private_symbol_original(&m.ctx->store.renames, info->dli_sname);
    return found;
}

static int interposed_dladdr(const void *address, Dl_info *info)
{
    struct exti_module caller;

    if (!find_caller(__builtin_return_address(0), &caller))
        return dladdr(address, info);
    return describe_address(&caller, address, dladdr(address, info), info);
}

#ifdef __GLIBC__
static int interposed_dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    struct exti_module caller;

    if (!find_caller(__builtin_return_address(0), &caller))
        return dladdr1(address, info, extra, flags);
    return describe_address(&caller, address, dladdr1(address, info, extra, flags), info);
}

static int interposed_dlinfo(void *handle, int request, void *out)
{
    struct exti_module caller, m;
    struct link_map *map;
    int n;

    if (!find_caller(__builtin_return_address(0), &caller) || request != RTLD_DI_ORIGIN ||
        dlinfo(handle, RTLD_DI_LINKMAP, &map) ||
        !exti__address_map_find((uintptr_t)map->l_ld, &m) || m.ctx != caller.ctx)
        return dlinfo(handle, request, out);
    n = (int)(exti__path_last_slash((char *)m.original) - m.original);
    snprintf(out, PATH_MAX, "%.*s", n ? n : 1, m.original);
    return 0;
}
#endif

/* ---- binding them ---- */

/* A function as the address that a slot holds. */
#define ADDRESS(function) ((void *)(uintptr_t)(function))

static void *loader_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"dlopen", ADDRESS(interposed_dlopen)},   {"dlsym", ADDRESS(interposed_dlsym)},
        {"dlclose", ADDRESS(interposed_dlclose)}, {"dlerror", ADDRESS(interposed_dlerror)},
        {"dladdr", ADDRESS(interposed_dladdr)},
#ifdef __GLIBC__
        {"dladdr1", ADDRESS(interposed_dladdr1)}, {"dlinfo", ADDRESS(interposed_dlinfo)},
#endif
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].symbol, symbol) == 0)
            return calls[i].to;
    return exti__iterate_phdr_call(symbol);
}

static void *target_of(const struct exti_module *m, const char *symbol)
{
    const struct exti_ctx *ctx = m->ctx;
    void *to;

    for (size_t i = 0; i < ctx->redirect_count; i++)
        if (strcmp(ctx->redirects[i].symbol, symbol) == 0)
            return ctx->redirects[i].to;
    for (size_t i = 0; i < m->redirect_count; i++)
        if (strcmp(m->redirects[i].symbol, symbol) == 0)
            return m->redirects[i].to;
    to = loader_call(symbol);
    return to ? to : exti__thread_call(symbol);
}

/* What makes a module's read-only part writable for as long as slots in it are written. */
struct writer {
    const struct exti_module *m;
    bool unprotected;
    int os_error;
};

static int protect(struct writer *w, int prot)
{
    const struct exti_layout *l = &w->m->layout;

    if (!mprotect((void *)l->relro_lo, l->relro_hi - l->relro_lo, prot))
        return 0;
    w->os_error = errno;
    return 1;
}

static int write_slot(struct writer *w, uintptr_t *slot, uintptr_t value)
{
    const struct exti_layout *l = &w->m->layout;
    uintptr_t at = (uintptr_t)slot;

    if (at >= l->relro_lo && at < l->relro_hi && !w->unprotected) {
        if (protect(w, PROT_READ | PROT_WRITE))
            return 1;
        w->unprotected = true;
    }
    *slot = value;
    return 0;
}

static int end_writing(struct writer *w, const char *what, struct exti_error *err)
{
    if (w->unprotected)
        protect(w, PROT_READ);
    return w->os_error ? exti__fail_io(err, w->os_error, w->m->copy, "%s", what) : 0;
}

static int bind(void *user, const struct exti_reference *ref)
{
    struct writer *w = user;
    void *to;

    if (ref->defined_here || ref->kind != EXTI_REF_ADDRESS || ref->addend)
        return 0;
    to = target_of(w->m, ref->name);
    if (!to || *ref->slot == (uintptr_t)to)
        return 0;
    return write_slot(w, ref->slot, (uintptr_t)to);
}

int exti__patch_references(struct exti_module *m, struct exti_error *err)
{
    struct writer w = {.m = m};
    struct exti_error e = {0};
    int rc = exti__loaded_references(&m->lib, bind, &w, &e);
    int write_rc = end_writing(&w, "cannot re-point its loader calls", rc ? NULL : &e);

    if ((rc || write_rc) && err)
        *err = e;
    return rc ? rc : write_rc;
}

int exti__write_slots(const struct exti_module *m, const struct exti_slot *slots, size_t count,
                      struct exti_error *err)
{
    struct writer w = {.m = m};

    for (size_t i = 0; i < count && !w.os_error; i++)
        write_slot(&w, slots[i].at, slots[i].value);
    return end_writing(&w, "cannot re-point its references", err);
}
