/* Imports and delay imports: the loader's rules, and that only the requested names changed. */
#include "pe/check/pe_check_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pe/check/pe_check_expect.h"

/* Bounds the work: tables that overlap could make a small file take forever. */
static size_t most_symbols(const struct pe_view *v)
{
    return v->file.n / 4 + 1;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void check_dll_symbols(struct pe_check *c, const struct pe_view *v, const struct pe_dll *d,
                              const char *subject, size_t *left)
{
    const size_t width = v->plus ? 8 : 4;
    struct pe_thunk t;
    bool sound = true;
    size_t i = 0;

    for (; *left && exti__pe_thunk(v, d, i, &t, &sound); i++)
        --*left;
    if (!sound || !*left)
        exti__pe_broken(c, d->at, subject,
                        "%s of %s: symbol %zu of its table at 0x%x cannot be read",
                        exti__pe_import_kind(d->delay), d->name, i, d->lookup);
    else if (!exti__pe_view_mapped(v, d->iat, (i + 1) * width))
        exti__pe_broken(c, d->at, subject, "%s of %s: %zu addresses at 0x%x are not in one section",
                        exti__pe_import_kind(d->delay), d->name, i, d->iat);
}

static int check_list(struct pe_check *c, const struct pe_view *v, bool delay,
                      struct exti_error *err)
{
    struct pe_dlls list = {NULL, 0, 0};
    size_t left = most_symbols(v);
    int rc = exti__pe_dlls(c, v, delay, &list, err);

    for (size_t i = 0; !rc && i < list.n; i++) {
        const struct pe_dll *d = &list.v[i];
        char subject[24];

        snprintf(subject, sizeof subject, "%zu", i);
        check_dll_symbols(c, v, d, subject, &left);
        if (delay && !exti__pe_view_mapped(v, d->handle, v->plus ? 8 : 4))
            exti__pe_broken(c, d->at + 8, subject,
                            "delay import of %s: no section has the module handle at 0x%x", d->name,
                            d->handle);
    }
    exti__pe_dlls_free(&list);
    return rc;
}

int exti__pe_rule_imports(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    return check_list(c, v, false, err);
}

int exti__pe_rule_delayed(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    return check_list(c, v, true, err);
}

/* ---- against the original -------------------------------------------------------------------- */

static bool same_fields(const struct pe_dll *b, const struct pe_dll *a)
{
    return b->delay == a->delay && b->lookup == a->lookup && b->iat == a->iat &&
           b->attributes == a->attributes && b->handle == a->handle;
}

static bool same_thunk(const struct pe_thunk *b, const struct pe_thunk *a)
{
    return b->number == a->number && !b->name == !a->name &&
           (!b->name || strcmp(b->name, a->name) == 0);
}

static void compare_symbols(struct pe_check *c, const struct pe_dll *b, const struct pe_dll *a,
                            size_t *left)
{
    struct pe_thunk was, now;
    bool sound;

    for (size_t i = 0; *left && exti__pe_thunk(&c->before, b, i, &was, &sound); i++, --*left)
        if (!exti__pe_thunk(&c->after, a, i, &now, &sound) || !same_thunk(&was, &now)) {
            exti__pe_finding(c, a->at, "%s of %s: symbol %zu is not the original's",
                             exti__pe_import_kind(a->delay), a->name, i);
            return;
        }
}

static void compare_import(struct pe_check *c, const struct pe_dll *b, const struct pe_dll *a,
                           size_t *left)
{
    if (!same_fields(b, a))
        exti__pe_finding(c, a->at, "%s of %s: other tables than the original has for %s",
                         exti__pe_import_kind(a->delay), a->name, b->name);
    else
        compare_symbols(c, b, a, left);
    if (a->delay && a->timestamp && a->timestamp != b->timestamp)
        exti__pe_finding(c, a->at + 28, "delay import of %s: TimeDateStamp 0x%x, not 0x%x", a->name,
                         a->timestamp, b->timestamp);
    if (!exti__pe_follows(c, b->name, a->name))
        exti__pe_finding(c, a->at + (a->delay ? 4 : 12), "%s %s: not %s",
                         exti__pe_import_kind(a->delay), a->name,
                         c->opts ? exti__pe_renamed(c, b->name) : "a name that a library can have");
}

int exti__pe_step_imports(struct pe_check *c, struct exti_error *err)
{
    size_t left = most_symbols(&c->before);

    (void)err;
    if (c->dlls_before.n != c->dlls_after.n) {
        exti__pe_finding(c, EXTI_NO_OFFSET, "%zu imports and delay imports, not %zu",
                         c->dlls_after.n, c->dlls_before.n);
        return 0;
    }
    for (size_t i = 0; i < c->dlls_before.n && !c->findings.stop; i++)
        compare_import(c, &c->dlls_before.v[i], &c->dlls_after.v[i], &left);
    return 0;
}

/* For a bound descriptor the loader uses addresses from the file and the name in the bound import
 * directory. */
static void check_bound(struct pe_check *c, const struct pe_dll *b, const struct pe_dll *a)
{
    const uint32_t chain = b->timestamp ? 0 : b->chain;

    if (a->timestamp || a->chain != chain)
        exti__pe_finding(c, a->at + 4,
                         "import of %s: TimeDateStamp 0x%x and ForwarderChain 0x%x, not 0 and 0x%x",
                         a->name, a->timestamp, a->chain, chain);
    else if (b->timestamp && b->lookup == b->iat)
        exti__pe_finding(c, a->at, "import of %s: bound, without an import lookup table", a->name);
}

static void check_bound_directory(struct pe_check *c)
{
    const size_t i = IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT;
    const uint32_t size = c->before.directory[i].size;
    struct exti_span b, a;

    if (c->after.directory[i].rva || c->after.directory[i].size)
        exti__pe_finding(c, EXTI_NO_OFFSET, "bound imports: 0x%x bytes at 0x%x, not none",
                         c->after.directory[i].size, c->after.directory[i].rva);
    if (!size || !exti__pe_view_at(&c->before, c->before.directory[i].rva, size, &b) ||
        exti__span_sub(c->after.file, b.base, size, "", &a, NULL))
        return;
    for (size_t k = 0; k < size; k++)
        if (a.base + k >= c->after.table_end && a.p[k]) {
            exti__pe_finding(c, a.base + k, "bound imports: their bytes are still there");
            return;
        }
}

int exti__pe_step_bound(struct pe_check *c, struct exti_error *err)
{
    (void)err;
    if (c->same)
        return 0;
    check_bound_directory(c);
    for (size_t i = 0; i < c->dlls_before.n && i < c->dlls_after.n && !c->findings.stop; i++)
        if (!c->dlls_before.v[i].delay)
            check_bound(c, &c->dlls_before.v[i], &c->dlls_after.v[i]);
    return 0;
}

/* ---- whether the new library has the symbols ------------------------------------------------- */

static int provided_name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct provided {
    const char *dll; /* "" without a name */
    const char **v;
    size_t n;
};

static int read_provided(struct pe_check *c, struct provided *out, struct pe_view *v,
                         struct exti_error *err)
{
    struct pe_exported x = {.present = false};
    int rc = exti__pe_view_open(c->bind[0], v, err);

    if (!rc)
        exti__pe_exported(c, v, &x);
    if (rc || !x.present)
        return rc;
    out->dll = x.dll;
    out->v = exti__calloc(x.name_count, sizeof *out->v);
    if (!out->v)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < x.name_count; i++) {
        const char *name =
            exti__pe_view_text(v, exti__pe_word32(x.names.p + 4 * i), PE_VIEW_LONGEST_SYMBOL);

        if (name)
            out->v[out->n++] = name;
    }
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, provided_name_order);
    return 0;
}

/* `own`: the library is a copy of the imported one, so ordinals keep their meaning. */
static void check_provided(struct pe_check *c, const struct provided *p, const struct pe_dll *d,
                           bool own, size_t *left)
{
    struct pe_thunk t;
    bool sound;

    for (size_t i = 0; *left && exti__pe_thunk(&c->after, d, i, &t, &sound) && !c->findings.stop;
         i++, --*left)
        if (!t.name && !own)
            exti__pe_finding(c, d->at,
                             "%s of %s: by ordinal %u, which may mean another symbol there",
                             exti__pe_import_kind(d->delay), d->name, t.number);
        else if (t.name &&
                 (!p->n || !bsearch(&t.name, p->v, p->n, sizeof *p->v, provided_name_order)))
            exti__pe_finding(c, d->at, "%s of %s: the library has no symbol %s",
                             exti__pe_import_kind(d->delay), d->name, t.name);
}

/* Whether bind[0] is the library that this import now names. */
static bool is_bound_to(const struct pe_check *c, const struct pe_dll *b, const struct pe_dll *a)
{
    const char *target = c->opts ? c->opts->bind_name : NULL;

    return strcmp(b->name, a->name) != 0 && (!target || exti__pe_same_library(a->name, target));
}

int exti__pe_step_provided(struct pe_check *c, struct exti_error *err)
{
    struct provided p = {.dll = ""};
    size_t left = most_symbols(&c->after);
    struct pe_view v = {.sections = NULL};
    int rc;

    if (!c->bind_count || c->dlls_before.n != c->dlls_after.n)
        return 0;
    rc = read_provided(c, &p, &v, err);
    if (!rc && v.machine != c->after.machine)
        exti__pe_finding(c, c->after.nt + 4, "machine 0x%x: the library to import is for 0x%x",
                         c->after.machine, v.machine);
    for (size_t i = 0; !rc && i < c->dlls_after.n && !c->findings.stop; i++) {
        const struct pe_dll *b = &c->dlls_before.v[i], *a = &c->dlls_after.v[i];

        if (is_bound_to(c, b, a))
            check_provided(c, &p, a, exti__pe_same_library(b->name, p.dll), &left);
    }
    exti__free(p.v);
    exti__pe_view_close(&v);
    return rc;
}
