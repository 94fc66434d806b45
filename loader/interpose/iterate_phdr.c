/* The walk over what is loaded, as copies see it: without other contexts' copies, and their own by the
 * originals' paths, as dladdr tells them. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "loader/interpose/iterate_phdr.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "loader/track/lingering.h"
#include "loader/track/module.h"

typedef int (*visitor)(struct dl_phdr_info *info, size_t size, void *data);

struct walk {
    const struct exti_ctx *ctx; /* NULL: not known */
    visitor visit;
    void *data;
};

/* What the C library tells of one library; a later one than this was built with may tell more. */
struct seen {
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

/* False for what the walk leaves out. */
static bool see(const struct walk *w, const struct dl_phdr_info *info, size_t size,
                struct seen *out)
{
    struct exti_module m;

    *out = (struct seen){.size = size < sizeof *info ? size : sizeof *info};
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

/* As the C library calls it: on a lock of its own, on which a compiler's unwinder relies that is linked into
 * a copy and keeps a cache, and with nothing unloaded meanwhile. */
static int show(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct walk *w = user;
    struct seen s;

    return see(w, info, size, &s) ? w->visit(&s.info, s.size, w->data) : 0;
}

/* ---- later ---- */

/* What was seen, with copies of what it points at: the library may be gone when it is shown. */
struct noted {
    struct noted *next;
    struct seen seen;
    ElfW(Phdr) headers[]; /* then its name */
};

struct notes {
    const struct walk *walk;
    struct noted *first, **last;
    bool incomplete;
};

static int note(struct dl_phdr_info *info, size_t size, void *user)
{
    struct notes *notes = user;
    size_t headers_size, name_size;
    struct noted *n;
    struct seen s;

    if (!see(notes->walk, info, size, &s))
        return 0;
    headers_size = s.info.dlpi_phnum * sizeof *n->headers;
    name_size = strlen(s.info.dlpi_name) + 1;
    n = exti__alloc(sizeof *n + headers_size + name_size);
    if (!n) {
        notes->incomplete = true;
        return 1;
    }
    *n = (struct noted){.seen = s};
    n->seen.info.dlpi_phdr = memcpy(n->headers, s.info.dlpi_phdr, headers_size);
    n->seen.info.dlpi_name = memcpy((char *)n->headers + headers_size, s.info.dlpi_name, name_size);
    *notes->last = n;
    notes->last = &n->next;
    return 0;
}

/* Without the C library's lock: what an interpreter does for its programs' functions may load libraries, or
 * wait for a thread that is loading one, which waits for that lock with the lock held that loading needs. */
static int show_later(struct walk *w)
{
    struct notes notes = {.walk = w, .last = &notes.first};
    int rc = 0;

    dl_iterate_phdr(note, &notes);
    if (notes.incomplete)
        rc = dl_iterate_phdr(show, w);
    for (struct noted *n = notes.first, *next; n; n = next) {
        next = n->next;
        if (!notes.incomplete && !rc)
            rc = w->visit(&n->seen.info, n->seen.size, w->data);
        exti__free(n);
    }
    return rc;
}

static int iterate(const struct exti_ctx *ctx, visitor visit, void *data, const void *call)
{
    struct walk w = {.ctx = ctx, .visit = visit, .data = data};
    struct exti_module caller, visitors;
    const bool compiled = exti__address_map_find((uintptr_t)visit, &visitors);

    if (exti__address_map_find((uintptr_t)call, &caller))
        w.ctx = caller.ctx;
    else if (!ctx && compiled)
        w.ctx = visitors.ctx;
    return compiled ? dl_iterate_phdr(show, &w) : show_later(&w);
}

/* ---- what is bound to it ---- */

#define CALL __builtin_return_address(0)

static int iterate_unknown(visitor visit, void *data)
{
    return iterate(NULL, visit, data, CALL);
}

/* Functions that differ in the context only which they stand for, as long as there is one left to give. */
#define PLACES 64

static const struct exti_ctx *_Atomic places[PLACES];

#define ONE(n)                                                                                     \
    static int iterate_##n(visitor visit, void *data)                                              \
    {                                                                                              \
        return iterate(atomic_load(&places[0##n]), visit, data, CALL);                             \
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

static int (*const functions[PLACES])(visitor, void *) = {ALL(NAME)};

#define ADDRESS(function) ((void *)(uintptr_t)(function))

void *exti__iterate_phdr_call(const char *symbol)
{
    return strcmp(symbol, "dl_iterate_phdr") == 0 ? ADDRESS(iterate_unknown) : NULL;
}

void *exti__iterate_phdr_for(const struct exti_ctx *ctx, const char *symbol)
{
    if (strcmp(symbol, "dl_iterate_phdr") != 0)
        return NULL;
    for (size_t i = 0; i < PLACES; i++)
        if (atomic_load(&places[i]) == ctx)
            return ADDRESS(functions[i]);
    for (size_t i = 0; i < PLACES; i++) {
        const struct exti_ctx *none = NULL;

        if (atomic_compare_exchange_strong(&places[i], &none, ctx))
            return ADDRESS(functions[i]);
    }
    return ADDRESS(iterate_unknown);
}

void exti__iterate_phdr_forget(const struct exti_ctx *ctx)
{
    for (size_t i = 0; i < PLACES; i++) {
        const struct exti_ctx *own = ctx;

        atomic_compare_exchange_strong(&places[i], &own, NULL);
    }
}
