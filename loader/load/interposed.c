#include "loader/load/interposed.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "loader/process/dl.h"
#include "loader/store/store_copy.h"

bool exti__is_allocation_function(const char *symbol)
{
    static const char *const names[] = {"malloc",        "calloc",   "realloc",
                                        "reallocarray",  "free",     "cfree",
                                        "aligned_alloc", "memalign", "posix_memalign",
                                        "valloc",        "pvalloc",  "malloc_usable_size"};
    /* Itanium C++ ABI: operator new, new[], delete and delete[]. */
    static const char *const operators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(symbol, operators[i], 4) == 0)
            return true;
    return false;
}

bool exti__is_interposed(const struct exti_image *im)
{
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        if ((s->flags & EXTI_SYM_EXPORT) && !(s->flags & (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE)) &&
            !exti__is_allocation_function(s->name) && exti__dl_global(s->name))
            return true;
    }
    return false;
}

/* Files that the process was found to capture nothing of, as every context drags in the same.  By their
 * hashes: of two that have one, one is asked for each time, or never, and still re-pointed afterwards. */
static _Atomic uint64_t uncaptured[1024];

static uint64_t add_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n--; p++)
        h = (h ^ *p) * 0x100000001b3; /* FNV-1a */
    return h;
}

static uint64_t hash_of(const char *source)
{
    uint64_t h = add_bytes(0xcbf29ce484222325, source, strlen(source));
    struct exti_file_id id = {0};

    exti__fs_id(source, &id, NULL);
    h = add_bytes(h, &id.inode, sizeof id.inode);
    return add_bytes(h, &id.mtime_ns, sizeof id.mtime_ns);
}

static int keep_off(struct exti_ctx *ctx, const char *source, struct exti_error *err)
{
    const uint64_t hash = hash_of(source);
    _Atomic uint64_t *place = &uncaptured[hash % (sizeof uncaptured / sizeof *uncaptured)];
    struct exti_error e = {0};
    struct exti_image *im;
    int rc;

    if (atomic_load(place) == hash)
        return 0;
    rc = exti_inspect(source, &im, err);
    if (rc)
        return rc;
    if (exti__is_interposed(im))
        rc = exti__store_make_symbolic(&ctx->store, source, &e);
    else
        atomic_store(place, hash);
    exti_image_free(im);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    /* A directory that cannot be written to, above all.  What can be re-pointed afterwards will be. */
    if (rc)
        exti__ctx_log(ctx, EXTI_LOG_WARN, "%s: is captured by the process, and stays so: %s",
                      source, e.message);
    return 0;
}

int exti__interposed_make_symbolic(struct exti_ctx *ctx, const struct exti_opening *o,
                                   struct exti_error *err)
{
    int rc = 0;

    if (ctx->store.manifest.target.format != EXTI_FORMAT_ELF)
        return 0;
    /* The first was asked for, and then looked at. */
    for (size_t i = 1; i < o->set.count && !rc; i++)
        if (!o->places[i].m && !o->set.copies[i].symbolic)
            rc = keep_off(ctx, o->set.copies[i].source, err);
    return rc;
}
