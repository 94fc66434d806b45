/* The exports trie: dyld's rules, and that the copy exports what the original does. */
#include "macho/check/macho_check_trie.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_exports.h"
#include "macho/check/macho_check_follow.h"
#include "macho/check/macho_check_report.h"

int exti__macho_rule_trie(struct macho_check *c, const struct macho_file *f, struct exti_error *err)
{
    struct macho_exports list = {.n = 0};
    const enum macho_piece_kind kind =
        f->pieces[MACHO_EXPORTS_TRIE].s.n ? MACHO_EXPORTS_TRIE : MACHO_EXPORT;
    int rc;

    if (exti__macho_settled(c, f, kind) && c->after.dylib_count >= c->before.dylib_count)
        return 0;
    rc = exti__macho_exports(c, f, &list, err);
    exti__macho_exports_free(&list);
    return rc;
}

/* ---- before and after ------------------------------------------------------------------------ */

static int compare_export(struct macho_check *c, const struct macho_exported *was,
                          const struct macho_exported *now, struct exti_error *err)
{
    const bool is_address =
        !(was->flags & EXPORT_SYMBOL_FLAGS_REEXPORT) &&
        (was->flags & EXPORT_SYMBOL_FLAGS_KIND_MASK) != EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE;
    const uint64_t move = is_address ? c->shift : 0;
    bool ok = true;
    int rc = 0;

    if (now->flags != was->flags || strcmp(now->import_name, was->import_name) != 0)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "export %s: flags 0x%" PRIx64 " \"%s\", not 0x%" PRIx64 " \"%s\"",
                            now->text, now->flags, now->import_name, was->flags, was->import_name);
    else if (now->address != was->address + move)
        exti__macho_finding(c, EXTI_NO_OFFSET, "export %s: address 0x%" PRIx64 ", not 0x%" PRIx64,
                            now->text, now->address, was->address + move);
    else if (was->flags & EXPORT_SYMBOL_FLAGS_REEXPORT)
        rc = exti__macho_follows(c, now->text, (int32_t)was->other, (int32_t)now->other, &ok, err);
    else
        ok = now->other == was->other + (was->other ? move : 0);
    if (!ok)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "export %s: library or resolver 0x%" PRIx64 " instead of 0x%" PRIx64,
                            now->text, now->other, was->other);
    return rc;
}

static int compare_exports(struct macho_check *c, const struct macho_exports *b,
                           const struct macho_exports *a, struct exti_error *err)
{
    size_t i = 0, j = 0;
    int rc = 0;

    while (!rc && !c->judge.stop && (i < b->n || j < a->n)) {
        const int order = i == b->n ? 1 : j == a->n ? -1 : strcmp(b->v[i].text, a->v[j].text);

        if (order < 0)
            exti__macho_finding(c, EXTI_NO_OFFSET, "export %s is lost", b->v[i].text);
        else if (order > 0)
            exti__macho_finding(c, EXTI_NO_OFFSET, "export %s is new", a->v[j].text);
        else
            rc = compare_export(c, &b->v[i], &a->v[j], err);
        i += order <= 0;
        j += order >= 0;
    }
    return rc;
}

int exti__macho_step_exports(struct macho_check *c, struct exti_error *err)
{
    struct macho_exports b = {.n = 0}, a = {.n = 0};
    int rc;

    if (!c->shift && c->same_dylibs && exti__macho_same_piece(c, MACHO_EXPORT) &&
        exti__macho_same_piece(c, MACHO_EXPORTS_TRIE))
        return 0;
    rc = exti__macho_exports(c, &c->before, &b, err);
    if (!rc)
        rc = exti__macho_exports(c, &c->after, &a, err);
    if (!rc) {
        exti__macho_exports_sort(&b);
        exti__macho_exports_sort(&a);
        rc = compare_exports(c, &b, &a, err);
    }
    exti__macho_exports_free(&b);
    exti__macho_exports_free(&a);
    return rc;
}
