/* Decides which library each reference of a copy is bound to.
 *
 *   bound to           condition                                       new target
 *   library n          the copy still needs it                         its new ordinal
 *                      removed, and `bind` exports the symbol          bind_ordinal
 *                      removed, and `bind` does not                    an error
 *   the file itself                                                    unchanged
 *   a flat look-up     EXTI_RW_SYMBOLIC, and the file defines it       the file itself
 *   a flat look-up or  `bind` exports the symbol                       bind_ordinal
 *   the main program   otherwise                                       unchanged
 *   a weak look-up,    the file defines the symbol                     the file itself
 *   with EXTI_RW_      linked against a library that an edit renames   its new ordinal
 *   CLEAR_UNIQUE       otherwise                                       unchanged
 *
 * Weak look-ups go to renamed libraries because a context's libraries are copies that take no part
 * in weak look-ups: dyld searches only images with MH_WEAK_DEFINES, and fails to load a file with
 * chained fixups if it does not find a name there.  Names such as operator new stay: libc++
 * defines them, and a program may replace them.
 *
 * A re-exported name counts as exported if `bind` has it, but not as defined by the file. */
#include "macho/edit/macho_targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/read/macho_references.h"
#include "macho/read/macho_symbols.h"
#include "macho/read/macho_trie.h"

/* ---- the names that the file refers to ------------------------------------------------------- */

int32_t exti__macho_new_library(const struct macho_build *b, int32_t was)
{
    return b->ordinals && (size_t)was <= b->f->dylib_count ? b->ordinals[was - 1] : was;
}

static int by_bound_name(const void *a, const void *b)
{
    return strcmp(((const struct macho_bound *)a)->name, ((const struct macho_bound *)b)->name);
}

static struct macho_bound *find_bound(const struct macho_rebind *r, const char *name)
{
    struct macho_bound key = {.name = name};

    return r->count ? bsearch(&key, r->names, r->count, sizeof key, by_bound_name) : NULL;
}

const struct macho_bound *exti__macho_bound(struct macho_rebind *r, const char *name)
{
    if (r->asked != name)
        r->answer = find_bound(r, name);
    r->asked = name;
    return r->answer;
}

static int add_bound_name(struct macho_rebind *r, const char *name, struct exti_error *err)
{
    struct macho_bound *names = exti__array_room(r->names, r->count, &r->cap, sizeof *names);

    if (!names)
        return exti__fail_nomem(err);
    r->names = names;
    r->names[r->count++] = (struct macho_bound){.name = name};
    return 0;
}

static int add_reference(void *user, const struct macho_reference *ref, struct exti_error *err)
{
    return add_bound_name(user, ref->name, err);
}

/* The symbol table may list names that nothing binds. */
static int add_undefined(void *user, const struct macho_nlist *n, struct exti_error *err)
{
    return add_bound_name(user, n->name, err);
}

static void drop_repeated(struct macho_rebind *r)
{
    size_t kept = 0;

    if (r->count)
        qsort(r->names, r->count, sizeof *r->names, by_bound_name);
    for (size_t i = 0; i < r->count; i++)
        if (!kept || strcmp(r->names[i].name, r->names[kept - 1].name) != 0)
            r->names[kept++] = r->names[i];
    r->count = kept;
}

static int mark_defined(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct macho_bound *known = find_bound(user, e->name);

    (void)err;
    if (known && !(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT)) {
        known->own = true;
        known->address = e->address;
    }
    return 0;
}

static int mark_provided(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct macho_bound *known = find_bound(user, e->name);

    (void)err;
    if (known)
        known->provided = true;
    return 0;
}

static int know_provided(struct macho_rebind *r, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < r->b->bind_count; i++) {
        struct macho_file f;

        rc = exti__macho_open(r->b->bind[i], &f, err);
        if (rc)
            break;
        rc = exti__macho_trie_walk(exti__macho_trie(&f), mark_provided, r, err);
        exti__macho_close(&f);
    }
    return rc;
}

static bool is_renamed(const struct macho_build *b, const char *name)
{
    for (size_t i = 0; i < b->opts->needed_count; i++)
        if (b->opts->needed[i].from && b->opts->needed[i].to &&
            !strcmp(b->opts->needed[i].from, name))
            return true;
    return false;
}

int exti__macho_undefined(const struct macho_build *b,
                          int (*each)(void *user, const struct macho_nlist *n,
                                      struct exti_error *err),
                          void *user, struct exti_error *err)
{
    uint64_t left = exti__macho_names_limit(b->f);
    size_t count = exti__macho_symbol_count(b->f);
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i++) {
        struct macho_nlist n;
        size_t size;

        rc = exti__macho_symbol(b->f, i, &n, err);
        if (rc || !exti__macho_is_undefined(&n))
            continue;
        size = strlen(n.name);
        if (size > left)
            return exti__fail(err, EXTI_E_FORMAT, b->f->file.base + n.at,
                              "symbol table: the names add up to more than a valid file has");
        left -= size;
        rc = each(user, &n, err);
    }
    return rc;
}

static int know_copied(void *user, const struct macho_nlist *n, struct exti_error *err)
{
    struct macho_rebind *r = user;
    const struct macho_file *f = r->b->f;
    struct macho_bound *known = find_bound(r, n->name);
    int32_t from = exti__macho_nlist_ordinal(f, n);

    (void)err;
    if (known && from > 0 && (size_t)from <= f->dylib_count &&
        is_renamed(r->b, f->dylibs[from - 1].name))
        known->copied = exti__macho_new_library(r->b, from);
    return 0;
}

int exti__macho_know_names(struct macho_rebind *r, struct exti_error *err)
{
    int rc = exti__macho_references(r->b->f, add_reference, r, err);

    if (!rc && r->b->f->flags & MH_TWOLEVEL)
        rc = exti__macho_undefined(r->b, add_undefined, r, err);
    if (rc)
        return rc;
    drop_repeated(r);
    rc = exti__macho_trie_walk(exti__macho_trie(r->b->f), mark_defined, r, err);
    if (!rc)
        rc = know_provided(r, err);
    if (!rc && r->b->opts->flags & EXTI_RW_CLEAR_UNIQUE)
        rc = exti__macho_undefined(r->b, know_copied, r, err);
    return rc;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static int fail_removed(const struct macho_build *b, const char *name, int32_t was,
                        struct exti_error *err)
{
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "%.100s is bound to %.200s, which the edits remove", name,
                      b->f->dylibs[was - 1].name);
}

int exti__macho_new_ordinal(struct macho_rebind *r, const char *name, int32_t was, int32_t *now,
                            struct exti_error *err)
{
    const struct macho_build *b = r->b;
    const struct macho_bound *known = exti__macho_bound(r, name);
    bool own = known && known->own, provided = known && known->provided;

    *now = was;
    if (was > 0) {
        *now = exti__macho_new_library(b, was);
        if (!*now && !provided)
            return fail_removed(b, name, was, err);
        if (!*now)
            *now = b->bind_ordinal;
    } else if (was == BIND_SPECIAL_DYLIB_WEAK_LOOKUP) {
        if (!(b->opts->flags & EXTI_RW_CLEAR_UNIQUE))
            return 0;
        if (own)
            *now = BIND_SPECIAL_DYLIB_SELF;
        else if (known && known->copied)
            *now = known->copied;
    } else if (was != BIND_SPECIAL_DYLIB_SELF) {
        if (was == BIND_SPECIAL_DYLIB_FLAT_LOOKUP && b->opts->flags & EXTI_RW_SYMBOLIC && own)
            *now = BIND_SPECIAL_DYLIB_SELF;
        else if (provided)
            *now = b->bind_ordinal;
    }
    return 0;
}
