/* Copies see the list of loaded libraries without other contexts' copies, and their own context's
 * copies by the paths of the originals, as dladdr tells them. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "loader/interpose/iterate_phdr.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "loader/process/guarded_dl.h"
#include "loader/track/address_map.h"
#include "loader/track/lingering.h"
#include "loader/track/redirects.h"

typedef int (*visitor)(struct dl_phdr_info *info, size_t size, void *data);

struct phdr_walk {
    const struct exti_ctx *ctx; /* NULL: not known */
    visitor callback;
    void *data;
};

/* What the C library tells of one library.  A later C library than the one built with may tell
 * more: that is cut. */
struct phdr_entry {
    struct dl_phdr_info info;
    size_t size;
};

static uintptr_t address_in(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    return 0;
}

/* False for a library that the walk leaves out. */
static bool filter_entry(const struct phdr_walk *w, const struct dl_phdr_info *info, size_t size,
                         struct phdr_entry *out)
{
    struct exti_module m;

    *out = (struct phdr_entry){.size = size < sizeof *info ? size : sizeof *info};
    memcpy(&out->info, info, out->size);
    if (!w->ctx)
        return true;
    if (!exti__address_map_find(address_in(info), &m))
        return !exti__lingering_is_others(w->ctx, address_in(info), info->dlpi_name);
    if (m.ctx != w->ctx)
        return false;
    out->info.dlpi_name = m.original;
    return true;
}

/* ---- at once ---- */

/* Calls back under the C library's lock, while nothing is unloaded: a compiler's unwinder that is
 * linked into a copy relies on that lock for its cache. */
static int show_entry(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct phdr_walk *w = user;
    struct phdr_entry s;

    return filter_entry(w, info, size, &s) ? w->callback(&s.info, s.size, w->data) : 0;
}

/* ---- later ---- */

/* An entry with copies of what it points at: the library may be gone when the entry is shown. */
struct kept_entry {
    struct kept_entry *next;
    struct phdr_entry entry;
    ElfW(Phdr) headers[]; /* then its name */
};

struct kept_entries {
    const struct phdr_walk *walk;
    struct kept_entry *first, **last;
    bool incomplete;
};

static int keep_entry(struct dl_phdr_info *info, size_t size, void *user)
{
    struct kept_entries *kept = user;
    size_t headers_size, name_size;
    struct kept_entry *n;
    struct phdr_entry s;

    if (!filter_entry(kept->walk, info, size, &s))
        return 0;
    headers_size = s.info.dlpi_phnum * sizeof *n->headers;
    name_size = strlen(s.info.dlpi_name) + 1;
    n = exti__alloc(sizeof *n + headers_size + name_size);
    if (!n) {
        kept->incomplete = true;
        return 1;
    }
    *n = (struct kept_entry){.entry = s};
    n->entry.info.dlpi_phdr = memcpy(n->headers, s.info.dlpi_phdr, headers_size);
    n->entry.info.dlpi_name =
        memcpy((char *)n->headers + headers_size, s.info.dlpi_name, name_size);
    *kept->last = n;
    kept->last = &n->next;
    return 0;
}

/* Calls back without the C library's lock.  A callback that an interpreter runs may load libraries,
 * or wait for a thread that does; that thread holds the lock that loading needs and waits for this
 * one. */
static int show_later(struct phdr_walk *w)
{
    struct kept_entries kept = {.walk = w, .last = &kept.first};
    int rc = 0;

    exti__dl_iterate_phdr(keep_entry, &kept);
    if (kept.incomplete)
        rc = exti__dl_iterate_phdr(show_entry, w);
    for (struct kept_entry *n = kept.first, *next; n; n = next) {
        next = n->next;
        if (!kept.incomplete && !rc)
            rc = w->callback(&n->entry.info, n->entry.size, w->data);
        exti__free(n);
    }
    return rc;
}

static int iterate_for(const struct exti_ctx *ctx, visitor callback, void *data, const void *call)
{
    struct phdr_walk w = {.ctx = ctx, .callback = callback, .data = data};
    struct exti_module caller, owner;
    const bool compiled = exti__address_map_find((uintptr_t)callback, &owner);

    if (exti__address_map_find((uintptr_t)call, &caller))
        w.ctx = caller.ctx;
    else if (!ctx && compiled)
        w.ctx = owner.ctx;
    return compiled ? exti__dl_iterate_phdr(show_entry, &w) : show_later(&w);
}

/* ---- trampolines ---- */

#define CALL __builtin_return_address(0)

static int iterate_unknown(visitor callback, void *data)
{
    return iterate_for(NULL, callback, data, CALL);
}

/* One trampoline per context, from a pool of 64.  Contexts beyond these are recognised by the
 * caller's address alone. */
#define TRAMPOLINES 64

static const struct exti_ctx *_Atomic trampoline_ctx[TRAMPOLINES]; /* NULL: free */

#define ONE(n)                                                                                     \
    static int iterate_##n(visitor callback, void *data)                                           \
    {                                                                                              \
        return iterate_for(atomic_load(&trampoline_ctx[0##n]), callback, data, CALL);              \
    }
#define NAME(n) iterate_##n,
#define EIGHT(what, n)                                                                             \
    what(n##0) what(n##1) what(n##2) what(n##3) what(n##4) what(n##5) what(n##6) what(n##7)
#define ALL(what)                                                                                  \
    EIGHT(what, 0)                                                                                 \
    EIGHT(what, 1)                                                                                 \
    EIGHT(what, 2)                                                                                 \
    EIGHT(what, 3)                                                                                 \
    EIGHT(what, 4)                                                                                 \
    EIGHT(what, 5)                                                                                 \
    EIGHT(what, 6)                                                                                 \
    EIGHT(what, 7)

ALL(ONE)

static int (*const trampolines[TRAMPOLINES])(visitor, void *) = {ALL(NAME)};

void *exti__iterate_phdr_call(const char *symbol)
{
    return strcmp(symbol, "dl_iterate_phdr") == 0 ? EXTI_ADDRESS(iterate_unknown) : NULL;
}

void *exti__iterate_phdr_for(const struct exti_ctx *ctx, const char *symbol)
{
    if (strcmp(symbol, "dl_iterate_phdr") != 0)
        return NULL;
    for (size_t i = 0; i < TRAMPOLINES; i++)
        if (atomic_load(&trampoline_ctx[i]) == ctx)
            return EXTI_ADDRESS(trampolines[i]);
    for (size_t i = 0; i < TRAMPOLINES; i++) {
        const struct exti_ctx *none = NULL;

        if (atomic_compare_exchange_strong(&trampoline_ctx[i], &none, ctx))
            return EXTI_ADDRESS(trampolines[i]);
    }
    return EXTI_ADDRESS(iterate_unknown);
}

void exti__iterate_phdr_forget(const struct exti_ctx *ctx)
{
    for (size_t i = 0; i < TRAMPOLINES; i++) {
        const struct exti_ctx *own = ctx;

        atomic_compare_exchange_strong(&trampoline_ctx[i], &own, NULL);
    }
}
