/* Binds a copy's references anew.
 *
 *   bound to           where                                              becomes
 *   library n          it is still needed                                 its new number
 *                      it is not, and `bind` exports the symbol           bind_ordinal
 *                      it is not                                          an error
 *   the file itself                                                       stays
 *   a flat look-up     EXTI_RW_SYMBOLIC, and the file defines the symbol  the file itself
 *   ... or the main    `bind` exports the symbol                          bind_ordinal
 *   program            neither                                            stays
 *   a weak look-up     with EXTI_RW_CLEAR_UNIQUE:
 *                      the file defines the symbol                        the file itself
 *                      it was linked against a library that an edit
 *                      gives another name                                 that library's new number
 *                      neither                                            stays
 *
 * The last but one because the libraries of a context are copies, which no longer take part in weak
 * look-ups: dyld searches images with MH_WEAK_DEFINES alone, and fails to load a chained file for a
 * name that it does not find there.  What stays are the likes of operator new: libc++ has them, and
 * a program may replace them.
 *
 * A name that the file re-exports counts as exported where `bind` has it, not as defined. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_rebind.h"

/* ---- the rules ------------------------------------------------------------------------------ */

/* A dependency's number in the copy: 0 where it is gone. */
static int32_t library(const struct macho_build *b, int32_t was)
{
    return b->ordinals && (size_t)was <= b->f->dylib_count ? b->ordinals[was - 1] : was;
}

static int gone(const struct macho_build *b, const char *name, int32_t was, struct exti_error *err)
{
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "%.100s is bound to %.200s, which is to be removed", name,
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
        *now = library(b, was);
        if (!*now && !provided)
            return gone(b, name, was, err);
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

/* ---- what is known of the names ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct macho_bound *)a)->name, ((const struct macho_bound *)b)->name);
}

static struct macho_bound *search(const struct macho_rebind *r, const char *name)
{
    struct macho_bound key = {.name = name};

    return r->count ? bsearch(&key, r->names, r->count, sizeof key, by_name) : NULL;
}

const struct macho_bound *exti__macho_bound(struct macho_rebind *r, const char *name)
{
    if (r->asked != name)
        r->answer = search(r, name);
    r->asked = name;
    return r->answer;
}

static int add_name(struct macho_rebind *r, const char *name, struct exti_error *err)
{
    if (r->count == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 64;
        struct macho_bound *names = exti__realloc_array(r->names, cap, sizeof *names);

        if (!names)
            return exti__fail_nomem(err);
        r->names = names;
        r->cap = cap;
    }
    r->names[r->count++] = (struct macho_bound){.name = name};
    return 0;
}

static int add_reference(void *user, const struct macho_reference *ref, struct exti_error *err)
{
    return add_name(user, ref->name, err);
}

/* The symbol table may name what nothing binds. */
static int add_undefined(void *user, const struct macho_nlist *n, struct exti_error *err)
{
    return add_name(user, n->name, err);
}

static void drop_repeated(struct macho_rebind *r)
{
    size_t kept = 0;

    if (r->count)
        qsort(r->names, r->count, sizeof *r->names, by_name);
    for (size_t i = 0; i < r->count; i++)
        if (!kept || strcmp(r->names[i].name, r->names[kept - 1].name) != 0)
            r->names[kept++] = r->names[i];
    r->count = kept;
}

static int mark_own(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct macho_bound *known = search(user, e->name);

    (void)err;
    if (known && !(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT)) {
        known->own = true;
        known->address = e->address;
    }
    return 0;
}

static int mark_provided(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct macho_bound *known = search(user, e->name);

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

/* Calls `each` with every undefined symbol. */
static int undefined(const struct macho_build *b,
                     int (*each)(void *user, const struct macho_nlist *n, struct exti_error *err),
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
                              "symbol table: names add up to more than the file can need");
        left -= size;
        rc = each(user, &n, err);
    }
    return rc;
}

static int know_copied(void *user, const struct macho_nlist *n, struct exti_error *err)
{
    struct macho_rebind *r = user;
    const struct macho_file *f = r->b->f;
    struct macho_bound *known = search(r, n->name);
    int32_t from = exti__macho_nlist_ordinal(f, n);

    (void)err;
    if (known && from > 0 && (size_t)from <= f->dylib_count &&
        is_renamed(r->b, f->dylibs[from - 1].name))
        known->copied = library(r->b, from);
    return 0;
}

static int know_names(struct macho_rebind *r, struct exti_error *err)
{
    int rc = exti__macho_references(r->b->f, add_reference, r, err);

    if (!rc && r->b->f->flags & MH_TWOLEVEL)
        rc = undefined(r->b, add_undefined, r, err);
    if (rc)
        return rc;
    drop_repeated(r);
    rc = exti__macho_trie_walk(exti__macho_trie(r->b->f), mark_own, r, err);
    if (!rc)
        rc = know_provided(r, err);
    if (!rc && r->b->opts->flags & EXTI_RW_CLEAR_UNIQUE)
        rc = undefined(r->b, know_copied, r, err);
    return rc;
}

/* ---- chained imports, classic files --------------------------------------------------------- */

static int rebind_imports(struct macho_rebind *r, struct exti_error *err)
{
    struct macho_chained c;
    int32_t *ordinals;
    bool changed = false;
    int rc = exti__macho_chained_open(r->b->f, &c, err);

    if (rc)
        return rc;
    ordinals = exti__realloc_array(NULL, c.imports_count, sizeof *ordinals);
    if (!ordinals)
        return exti__fail_nomem(err);
    for (uint32_t i = 0; !rc && i < c.imports_count; i++) {
        struct macho_import im;

        rc = exti__macho_chained_import(&c, i, &im, err);
        if (!rc)
            rc = exti__macho_new_ordinal(r, im.name, im.ordinal, &ordinals[i], err);
        if (rc)
            break;
        changed |= ordinals[i] != im.ordinal;
        r->weak_left |= ordinals[i] == BIND_SPECIAL_DYLIB_WEAK_LOOKUP;
    }
    /* An entry grows from 4 to 16 bytes at most. */
    if (!rc && changed)
        rc = exti__macho_chained_set_ordinals(
            &c, ordinals, exti__macho_piece_new(r->b, MACHO_CHAINED_FIXUPS, 4 * c.s.n + 64), err);
    exti__free(ordinals);
    return rc;
}

/* What dyld binds by relocations, from before macOS 10.6. */
static int check_classic(void *user, const struct macho_reference *ref, struct exti_error *err)
{
    struct macho_rebind *r = user;
    int32_t now;
    int rc = exti__macho_new_ordinal(r, ref->name, ref->ordinal, &now, err);

    if (!rc && now != ref->ordinal)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, r->b->f->file.base + ref->at,
                        "%.100s is bound by relocations, as before macOS 10.6, and cannot be "
                        "bound anew",
                        ref->name);
    return rc;
}

static int rebind_classic(struct macho_rebind *r, struct exti_error *err)
{
    r->weak_left = r->b->f->flags & MH_BINDS_TO_WEAK;
    if (r->b->opts->flags & EXTI_RW_CLEAR_UNIQUE &&
        r->b->f->flags & (MH_WEAK_DEFINES | MH_BINDS_TO_WEAK))
        return exti__fail(err, EXTI_E_UNSUPPORTED, r->b->f->file.base + 24,
                          "weak definitions are bound by relocations, as before macOS 10.6, and "
                          "cannot be bound anew");
    return exti__macho_references(r->b->f, check_classic, r, err);
}

/* ---- symbol table and exports --------------------------------------------------------------- */

static int library_byte(int32_t ordinal)
{
    if (ordinal == BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE)
        return EXECUTABLE_ORDINAL;
    /* A byte cannot tell more: dyld does not look here, and tools then name no library. */
    if (ordinal < 0 || ordinal > (int32_t)MAX_LIBRARY_ORDINAL)
        return DYNAMIC_LOOKUP_ORDINAL;
    return ordinal;
}

static int set_library(void *user, const struct macho_nlist *n, struct exti_error *err)
{
    struct macho_rebind *r = user;
    struct macho_build *b = r->b;
    const struct macho_bound *known = exti__macho_bound(r, n->name);
    int32_t was = exti__macho_nlist_ordinal(b->f, n), now;
    struct exti_span s = b->f->pieces[MACHO_SYMBOLS].s;
    struct exti_buf *out = &b->pieces[MACHO_SYMBOLS].data;
    uint8_t byte;
    int rc;

    /* Nothing binds it: else it would have been refused by now. */
    if (was > 0 && !library(b, was) && !(known && known->provided))
        now = BIND_SPECIAL_DYLIB_FLAT_LOOKUP;
    else if ((rc = exti__macho_new_ordinal(r, n->name, was, &now, err)))
        return rc;
    if (now == was)
        return 0;
    byte = (uint8_t)library_byte(now);
    if (!b->pieces[MACHO_SYMBOLS].replaced) {
        out = exti__macho_piece_new(b, MACHO_SYMBOLS, s.n);
        rc = exti__buf_append(out, s.p, s.n, err);
        if (rc)
            return rc;
    }
    return exti__buf_patch(out, (size_t)(n->at + b->f->file.base - s.base) + 7, &byte, 1, err);
}

struct renumbered {
    const struct macho_build *b;
    bool any;
};

static int renumber(void *user, struct macho_export *e, struct exti_error *err)
{
    struct renumbered *x = user;
    int32_t was = (int32_t)e->other, now;

    if (!(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT) || !e->other || e->other > x->b->f->dylib_count)
        return 0;
    now = library(x->b, was);
    if (!now)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "%.100s is re-exported from %.200s, which is to be removed", e->name,
                          x->b->f->dylibs[was - 1].name);
    x->any |= now != was;
    e->other = (uint64_t)now;
    return 0;
}

static int look_at_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct macho_export copy = *e;

    return renumber(user, &copy, err);
}

static int renumber_exports(struct macho_build *b, struct exti_error *err)
{
    struct renumbered x = {.b = b};
    struct exti_span trie = exti__macho_trie(b->f);
    int rc = exti__macho_trie_walk(trie, look_at_export, &x, err);

    if (rc || !x.any)
        return rc;
    return exti__macho_trie_map(
        trie, renumber, &x,
        exti__macho_piece_new(
            b, b->f->pieces[MACHO_EXPORTS_TRIE].s.n ? MACHO_EXPORTS_TRIE : MACHO_EXPORT,
            2 * trie.n + 64),
        err);
}

/* ---- renames -------------------------------------------------------------------------------- */

struct renames {
    const char **names; /* by name */
    size_t count;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int refuse_renamed(const struct renames *x, const char *name, struct exti_error *err)
{
    if (!bsearch(&name, x->names, x->count, sizeof name, by_text))
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "%.100s: private names are for ELF; Mach-O binds to libraries by number",
                      name);
}

static int refuse_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    return refuse_renamed(user, e->name, err);
}

static int refuse_reference(void *user, const struct macho_reference *r, struct exti_error *err)
{
    return refuse_renamed(user, r->name, err);
}

static int check_renames(const struct macho_build *b, struct exti_error *err)
{
    struct renames x = {.count = b->opts->rename_count};
    int rc;

    if (!x.count)
        return 0;
    x.names = exti__realloc_array(NULL, x.count, sizeof *x.names);
    if (!x.names)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < x.count; i++)
        x.names[i] = b->opts->renames[i].from;
    qsort(x.names, x.count, sizeof *x.names, by_text);
    rc = exti__macho_trie_walk(exti__macho_trie(b->f), refuse_export, &x, err);
    if (!rc)
        rc = exti__macho_references(b->f, refuse_reference, &x, err);
    exti__free(x.names);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool is_renumbered(const struct macho_build *b)
{
    for (size_t i = 0; b->ordinals && i < b->f->dylib_count; i++)
        if (b->ordinals[i] != (int32_t)i + 1)
            return true;
    return false;
}

static int rebind(struct macho_rebind *r, struct exti_error *err)
{
    struct macho_build *b = r->b;
    int rc = know_names(r, err);

    if (!rc && b->f->pieces[MACHO_CHAINED_FIXUPS].s.n)
        rc = rebind_imports(r, err);
    else if (!rc && b->f->pieces[MACHO_BIND].present)
        rc = exti__macho_rebind_opcodes(r, err);
    else if (!rc)
        rc = rebind_classic(r, err);
    /* Without MH_TWOLEVEL the byte stands for nothing. */
    if (!rc && b->f->flags & MH_TWOLEVEL)
        rc = undefined(b, set_library, r, err);
    if (!rc && is_renumbered(b))
        rc = renumber_exports(b, err);
    if (!rc && b->opts->flags & EXTI_RW_CLEAR_UNIQUE)
        b->header_flags &= ~(MH_WEAK_DEFINES | (r->weak_left ? 0 : MH_BINDS_TO_WEAK));
    return rc;
}

int exti__macho_rebind(struct macho_build *b, struct exti_error *err)
{
    struct macho_rebind r = {.b = b};
    int rc = check_renames(b, err);

    if (rc || (!b->bind_count && !is_renumbered(b) &&
               !(b->opts->flags & (EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE))))
        return rc;
    rc = rebind(&r, err);
    exti__free(r.names);
    return rc;
}
