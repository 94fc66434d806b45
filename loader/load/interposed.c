#include "loader/load/interposed.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/os/fs_id.h"
#include "loader/process/dl.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_queries.h"

bool exti__is_allocation_function(const char *symbol)
{
    static const char *const names[] = {"malloc",        "calloc",   "realloc",
                                        "reallocarray",  "free",     "cfree",
                                        "aligned_alloc", "memalign", "posix_memalign",
                                        "valloc",        "pvalloc",  "malloc_usable_size"};
    /* Itanium C++ ABI: operator new, new[], delete and delete[] */
    static const char *const operators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(symbol, operators[i], 4) == 0)
            return true;
    return false;
}

static bool is_interposed(const struct exti_image *im)
{
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        if ((s->flags & EXTI_SYM_EXPORT) && !(s->flags & (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE)) &&
            !exti__is_allocation_function(s->name) && exti__dl_global(s->name))
            return true;
    }
    return false;
}

/* Files of whose symbols the process interposes none: every context needs the same files.
 * Known by hash: when two files share a slot, each look-up misses and reads the file again.  When
 * two share a hash, a captured one may be taken for sound; its references are still re-pointed
 * after it is opened. */
static _Atomic uint64_t uncaptured[1024];

/* FNV-1a */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n--; p++)
        h = (h ^ *p) * 0x100000001b3;
    return h;
}

static uint64_t hash_file(const char *source)
{
    uint64_t h = hash_bytes(0xcbf29ce484222325, source, strlen(source));
    struct exti_file_id id = {0};

    exti__fs_id(source, &id, NULL);
    h = hash_bytes(h, &id.inode, sizeof id.inode);
    return hash_bytes(h, &id.mtime_ns, sizeof id.mtime_ns);
}

int exti__interposed_make_symbolic(struct exti_ctx *ctx, const char *source, struct exti_error *err)
{
    _Atomic uint64_t *slot;
    struct exti_error e = {0};
    struct exti_image *im;
    uint64_t hash;
    int rc;

    if (exti__store_format(&ctx->store) != EXTI_FORMAT_ELF)
        return 0;
    hash = hash_file(source);
    slot = &uncaptured[hash % (sizeof uncaptured / sizeof *uncaptured)];
    if (atomic_load(slot) == hash)
        return 0;
    rc = exti_inspect(source, &im, err);
    if (rc)
        return rc;
    if (is_interposed(im))
        rc = exti__store_make_symbolic(&ctx->store, source, &e);
    else
        atomic_store(slot, hash);
    exti_image_free(im);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    /* Most likely the directory is read-only.  What can be re-pointed after the opening will be. */
    if (rc)
        exti__ctx_log(ctx, EXTI_LOG_WARN, "%s: the process captures its symbols: %s", source,
                      e.message);
    return 0;
}
