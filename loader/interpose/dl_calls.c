/* A copy's references to the dlopen family are bound to the functions here, so that what it opens
 * belongs to its context.  They know the context by the address that they return to. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "loader/interpose/dl_calls.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <link.h>
#endif

#include "base/error.h"
#include "base/path.h"
#include "loader/interpose/copy_dlopen.h"
#include "loader/interpose/iterate_phdr.h"
#include "loader/load/load.h"
#include "loader/load/reference_target.h"
#include "loader/load/unload.h"
#include "loader/process/guarded_dl.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"
#include "loader/track/calls.h"
#include "loader/track/redirects.h"

/* The error that dlerror reports next on this thread, if it is ours. */
static _Thread_local char last_error[sizeof(struct exti_error)];

static void set_error(const struct exti_error *err)
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

/* The system's loader would share the original with a context that cannot copy it now. */
static void *refuse_to_open(const char *file, const char *why, struct exti_error *err)
{
    exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET, "%s", why);
    exti__error_file(err, file ? file : "");
    set_error(err);
    return NULL;
}

/* Begins a call of the module that called, if its context can answer: not while its API library is
 * being opened, nor after a hook has refused that. */
static bool begin_call(struct exti_call *c, const void *address, struct exti_module *caller)
{
    if (!exti__call_begin_at(c, (uintptr_t)address, caller))
        return false;
    if (caller->ctx->api)
        return true;
    exti__call_end(c);
    return false;
}

#define CALL __builtin_return_address(0)

static void *interposed_dlopen(const char *file, int mode)
{
    struct exti_error err = {0};
    struct exti_call call;
    struct exti_module m;
    void *handle;

    last_error[0] = 0;
    if (!begin_call(&call, CALL, &m))
        return call.refused ? refuse_to_open(file, call.refused, &err) : exti__dlopen(file, mode);
    handle = exti__copy_dlopen(&m, file, mode, &err);
    exti__call_end(&call);
    if (!handle && err.code)
        set_error(&err);
    return handle;
}

/* The context's own symbol if `symbol`, found globally, lies in a file that the context has a copy
 * of, or is a variable of one.  Variables of a thread lie in no file. */
static void *own_instead(const struct exti_module *caller, const char *name, void *symbol)
{
    struct exti_ref_targets targets = {.ctx = caller->ctx};
    uintptr_t value = (uintptr_t)symbol;
    const struct exti_reference ref = {.name = name, .slot = &value};
    struct exti_ref_target *target;
    struct exti_ref_cure own = {0};

    if (exti__ref_target_find(&targets, &ref, &target, NULL))
        target = NULL;
    else if (!target)
        symbol = exti__ref_target_variable(&targets, &caller->lib, name, symbol);
    if (target)
        exti__ref_target_counterpart(target, &caller->lib, &ref, &own, NULL);
    exti__ref_targets_free(&targets);
    return own.count ? (void *)own.words[0] : symbol;
}

/* For RTLD_DEFAULT, and for the API library's handle, which stands for the program too.  API
 * symbols are the context's.  All others are looked up in the process first, so that an allocator
 * put before the C library's stays in place. */
static void *program_symbol(const struct exti_module *caller, void *scope, const char *name)
{
    const struct exti_module *api = caller->ctx->api;
    const char *private_name = exti__store_private_symbol(&caller->ctx->store, name);
    void *p;

    if (exti__loaded_defines(&api->lib, private_name ? private_name : name))
        return exti__dlsym(api->handle, private_name ? private_name : name);
    p = exti__dlsym(RTLD_DEFAULT, name);
    return p ? own_instead(caller, name, p) : exti__dlsym(scope, name);
}

static void *symbol_in(const struct exti_module *caller, void *handle, const char *name)
{
    const char *private_name;
    void *p;

    if (handle == RTLD_DEFAULT)
        return program_symbol(caller, caller->handle, name);
    if (handle == caller->ctx->api->handle)
        return program_symbol(caller, handle, name);
    private_name = exti__store_private_symbol(&caller->ctx->store, name);
    p = private_name ? exti__dlsym(handle, private_name) : NULL;
    return p ? p : exti__dlsym(handle, name);
}

/* The handle of the nth module that the caller needs, or NULL. */
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

/* RTLD_NEXT starts after the library that calls dlsym, which would be this one.  The modules that
 * come after the caller are those that it needs. */
static void *symbol_after(const struct exti_module *caller, const char *name)
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
    return exti__dlsym(RTLD_NEXT, name);
}

/* A function that is interposed in copies is the interposed one for look-ups too. */
static void *symbol_for(const struct exti_module *caller, void *handle, const char *name)
{
    void *p = handle == RTLD_NEXT ? symbol_after(caller, name) : symbol_in(caller, handle, name);
    struct exti_module owner;
    void *own;

    if (!p || exti__address_map_find((uintptr_t)p, &owner))
        return p;
    own = exti__iterate_phdr_for(caller->ctx, name);
    if (!own)
        own = caller->ctx->replacement(caller->ctx, name);
    return own ? own : p;
}

static void *interposed_dlsym(void *handle, const char *name)
{
    struct exti_call call;
    struct exti_module m;
    void *p;

    last_error[0] = 0;
    if (!begin_call(&call, CALL, &m))
        return exti__dlsym(handle, name);
    p = symbol_for(&m, handle, name);
    exti__call_end(&call);
    return p;
}

static int close_for(const struct exti_module *caller, void *handle)
{
    struct exti_ctx *ctx = caller->ctx;
    struct exti_error err = {0};
    struct exti_module *m;

    if (handle == ctx->api->handle)
        return 0;
    pthread_mutex_lock(&ctx->lock);
    for (m = ctx->modules; m && m->handle != handle; m = m->older)
        ;
    pthread_mutex_unlock(&ctx->lock);
    /* While the context closes, a finaliser may close a module that has been closed before. */
    if (!m)
        return ctx->closing ? 0 : exti__dlclose(handle);
    if (!exti__close(m, &err))
        return 0;
    set_error(&err);
    return -1;
}

static int interposed_dlclose(void *handle)
{
    struct exti_module caller;
    struct exti_call call;
    int rc;

    last_error[0] = 0;
    if (!begin_call(&call, CALL, &caller))
        return exti__dlclose(handle);
    rc = close_for(&caller, handle);
    exti__call_end(&call);
    return rc;
}

/* ---- where a copy seems to be ---- */

/* Packages look for their data beside the library that dladdr tells for an address of theirs.  The
 * data is beside the original. */
static int tell_original(const struct exti_module *caller, const void *address, int found,
                         Dl_info *info)
{
    struct exti_module m;

    if (!found || !exti__address_map_find((uintptr_t)address, &m) || m.ctx != caller->ctx)
        return found;
    info->dli_fname = m.original;
    if (info->dli_sname)
        info->dli_sname = exti__store_original_symbol(&m.ctx->store, info->dli_sname);
    return found;
}

static int interposed_dladdr(const void *address, Dl_info *info)
{
    struct exti_module caller;
    struct exti_call call;
    int found = dladdr(address, info);

    if (!exti__call_begin_note(&call, (uintptr_t)CALL, &caller))
        return found;
    found = tell_original(&caller, address, found, info);
    exti__call_end(&call);
    return found;
}

#ifdef __GLIBC__
static int interposed_dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    struct exti_module caller;
    struct exti_call call;
    int found = dladdr1(address, info, extra, flags);

    if (!exti__call_begin_note(&call, (uintptr_t)CALL, &caller))
        return found;
    found = tell_original(&caller, address, found, info);
    exti__call_end(&call);
    return found;
}

static bool tell_origin(const struct exti_module *caller, void *handle, char *out)
{
    struct exti_module m;
    struct link_map *map;
    int n;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) ||
        !exti__address_map_find((uintptr_t)map->l_ld, &m) || m.ctx != caller->ctx)
        return false;
    n = (int)(exti__path_last_slash((char *)m.original) - m.original);
    snprintf(out, PATH_MAX, "%.*s", n ? n : 1, m.original);
    return true;
}

static int interposed_dlinfo(void *handle, int request, void *out)
{
    struct exti_module caller;
    struct exti_call call;
    bool told = false;

    if (request == RTLD_DI_ORIGIN && exti__call_begin_note(&call, (uintptr_t)CALL, &caller)) {
        told = tell_origin(&caller, handle, out);
        exti__call_end(&call);
    }
    return told ? 0 : dlinfo(handle, request, out);
}
#endif

/* ---- looking them up ---- */

void *exti__dl_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"dlopen", EXTI_ADDRESS(interposed_dlopen)},
        {"dlsym", EXTI_ADDRESS(interposed_dlsym)},
        {"dlclose", EXTI_ADDRESS(interposed_dlclose)},
        {"dlerror", EXTI_ADDRESS(interposed_dlerror)},
        {"dladdr", EXTI_ADDRESS(interposed_dladdr)},
#ifdef __GLIBC__
        {"dladdr1", EXTI_ADDRESS(interposed_dladdr1)},
        {"dlinfo", EXTI_ADDRESS(interposed_dlinfo)},
#endif
    };
    void *to = exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);

    return to ? to : exti__iterate_phdr_call(symbol);
}
