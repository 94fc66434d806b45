/* Binds the references of a copy to their new targets, and updates symbols and exports to match. */
#include "macho/edit/macho_rebind.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_chained_write.h"
#include "macho/edit/macho_rebind_opcodes.h"
#include "macho/edit/macho_targets.h"
#include "macho/edit/macho_trie_build.h"
#include "macho/read/macho_references.h"
#include "macho/read/macho_symbols.h"
#include "macho/read/macho_trie.h"

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
    /* An entry grows from 4 to at most 16 bytes. */
    if (!rc && changed)
        rc = exti__macho_chained_set_ordinals(
            &c, ordinals, exti__macho_piece_new(r->b, MACHO_CHAINED_FIXUPS, 4 * c.s.n + 64), err);
    exti__free(ordinals);
    return rc;
}

/* Relocations that dyld binds in files from before macOS 10.6. */
static int check_classic(void *user, const struct macho_reference *ref, struct exti_error *err)
{
    struct macho_rebind *r = user;
    int32_t now;
    int rc = exti__macho_new_ordinal(r, ref->name, ref->ordinal, &now, err);

    if (!rc && now != ref->ordinal)
        rc = exti__fail(
            err, EXTI_E_UNSUPPORTED, r->b->f->file.base + ref->at,
            "%.100s is bound by relocations, as before macOS 10.6, which cannot be rewritten",
            ref->name);
    return rc;
}

static int rebind_classic(struct macho_rebind *r, struct exti_error *err)
{
    r->weak_left = r->b->f->flags & MH_BINDS_TO_WEAK;
    if (r->b->opts->flags & EXTI_RW_CLEAR_UNIQUE &&
        r->b->f->flags & (MH_WEAK_DEFINES | MH_BINDS_TO_WEAK))
        return exti__fail(err, EXTI_E_UNSUPPORTED, r->b->f->file.base + 24,
                          "weak definitions are bound by relocations, as before macOS 10.6, which "
                          "cannot be rewritten");
    return exti__macho_references(r->b->f, check_classic, r, err);
}

/* ---- symbol table and exports --------------------------------------------------------------- */

static int library_byte(int32_t ordinal)
{
    if (ordinal == BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE)
        return EXECUTABLE_ORDINAL;
    /* One byte cannot hold more.  dyld does not read it, and tools then show no library. */
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

    /* Nothing binds the symbol; a binding would have been refused before. */
    if (was > 0 && !exti__macho_new_library(b, was) && !(known && known->provided))
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
    now = exti__macho_new_library(x->b, was);
    if (!now)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "%.100s is re-exported from %.200s, which the edits remove", e->name,
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
    const char **names; /* sorted */
    size_t count;
};

static int by_rename(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int refuse_renamed(const struct renames *x, const char *name, struct exti_error *err)
{
    if (!bsearch(&name, x->names, x->count, sizeof name, by_rename))
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
        "%.100s: symbols can be renamed in ELF files only; Mach-O binds to libraries by number",
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
    qsort(x.names, x.count, sizeof *x.names, by_rename);
    rc = exti__macho_trie_walk(exti__macho_trie(b->f), refuse_export, &x, err);
    if (!rc)
        rc = exti__macho_references(b->f, refuse_reference, &x, err);
    exti__free(x.names);
    return rc;
}

/* ---- the whole file -------------------------------------------------------------------------- */

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
    int rc = exti__macho_know_names(r, err);

    if (!rc && b->f->pieces[MACHO_CHAINED_FIXUPS].s.n)
        rc = rebind_imports(r, err);
    else if (!rc && b->f->pieces[MACHO_BIND].present)
        rc = exti__macho_rebind_opcodes(r, err);
    else if (!rc)
        rc = rebind_classic(r, err);
    /* Without MH_TWOLEVEL the byte has no meaning. */
    if (!rc && b->f->flags & MH_TWOLEVEL)
        rc = exti__macho_undefined(b, set_library, r, err);
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
