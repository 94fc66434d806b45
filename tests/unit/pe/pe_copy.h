/* Fixture of a toy DLL, the edits, and the copy that the plan makes. */
#ifndef TESTS_UNIT_PE_COPY_H
#define TESTS_UNIT_PE_COPY_H

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pe/check/pe_check.h"
#include "pe/edit/pe_plan.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_export.h"
#include "pe/read/pe_import.h"
#include "tests/support/exti_test.h"
#include "tests/unit/pe/pe_toy.h"

#define LONGER "python311-context-4711.dll"

struct copy_fixture {
    struct pe_toy toy, library;
    struct exti_needed needed[8];
    struct exti_rewrite_opts opts;
    struct exti_span bind;
    struct exti_plan plan;
    uint8_t *bytes; /* of the copy */
    size_t n;
    struct pe_file file; /* the copy, opened */
    char *listed;
    struct exti_error err;
};

static inline void copy_reset(struct copy_fixture *f)
{
    exti__mem_fail_after(-1);
    exti__plan_free(&f->plan);
    exti__pe_close(&f->file);
    free(f->bytes);
    free(f->listed);
    f->bytes = NULL;
    f->listed = NULL;
    f->err = (struct exti_error){0};
}

static inline int copy_setup(void **state)
{
    static struct copy_fixture f;

    memset(&f, 0, sizeof f);
    f.opts.size = sizeof f.opts;
    f.opts.needed = f.needed;
    *state = &f;
    return 0;
}

static inline int copy_teardown(void **state)
{
    copy_reset(*state);
    return 0;
}

#define copy_test(f) cmocka_unit_test_setup_teardown(f, copy_setup, copy_teardown)

static inline void copy_replace(struct copy_fixture *f, const char *from, const char *to)
{
    f->needed[f->opts.needed_count++] = (struct exti_needed){.from = from, .to = to};
}

static inline int plan_of(struct copy_fixture *f, struct exti_span file, struct exti_plan *plan)
{
    struct exti_request req = {.opts = &f->opts, .bind = &f->bind, .bind_count = f->bind.p != NULL};

    exti__plan_init(plan, file.n * 4 + ((size_t)1 << 20));
    return exti__pe_plan(file, &req, plan, &f->err);
}

static inline int copy_try(struct copy_fixture *f)
{
    copy_reset(f);
    return plan_of(f, exti__span(f->toy.b, f->toy.n), &f->plan);
}

static inline void assert_refused(struct copy_fixture *f, int code, uint64_t offset,
                                  const char *text)
{
    assert_exti(copy_try(f), code, &f->err, offset);
    assert_says(&f->err, text);
}

static inline void assert_plans_equal(const struct exti_plan *a, const struct exti_plan *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->patches[i].offset, b->patches[i].offset);
        assert_int_equal(a->patches[i].size, b->patches[i].size);
        assert_memory_equal(a->data.p + a->patches[i].data, b->data.p + b->patches[i].data,
                            a->patches[i].size);
    }
    assert_int_equal(a->tail.n, b->tail.n);
    if (a->tail.n)
        assert_memory_equal(a->tail.p, b->tail.p, a->tail.n);
}

static inline void assert_nothing_to_do(struct copy_fixture *f, struct exti_span file)
{
    struct exti_plan again;

    assert_ok(plan_of(f, file, &again), &f->err);
    assert_int_equal(again.count, 0);
    assert_int_equal(again.tail.n, 0);
    exti__plan_free(&again);
}

/* The section of the import directory. */
static inline size_t ptoy_home(const struct pe_toy *t)
{
    const uint64_t rva = ptoy_get(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_IMPORT), 4);

    return rva < t->rva[PTOY_DATA] ? PTOY_TEXT : PTOY_RDATA;
}

/* Edits must not touch code, data, relocations and import address tables. */
static inline void assert_rest_is_kept(const struct copy_fixture *f)
{
    const struct pe_toy *t = &f->toy;
    struct exti_span s;

    for (size_t i = 0; i < PTOY_SECTIONS; i++) {
        const uint64_t memory = ptoy_get(t, ptoy_section(t, i) + 8, 4);
        const uint64_t raw = ptoy_get(t, ptoy_section(t, i) + 16, 4);
        const uint64_t n = memory < raw ? memory : raw;

        if (i == PTOY_RDATA || i == ptoy_home(t) || !n)
            continue;
        assert_ok(exti__pe_at(&f->file, t->rva[i], n, "section", &s, NULL), &f->err);
        assert_memory_equal(s.p, t->b + t->start[i], n);
    }
    assert_ok(exti__pe_at(&f->file, ptoy_rva(t, t->iat[0]), 6 * t->word, "IAT", &s, NULL), &f->err);
    assert_memory_equal(s.p, t->b + t->iat[0], 6 * t->word);
    assert_ok(exti__pe_at(&f->file, ptoy_rva(t, t->tls), 24, "TLS", &s, NULL), &f->err);
    assert_memory_equal(s.p, t->b + t->tls, 24);
    if (f->file.checksum)
        assert_int_equal(f->file.checksum,
                         ptoy_checksum(f->bytes, f->n, (size_t)f->file.optional_at + 64));
}

static inline int copy_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    fail_msg("%s, at 0x%llx", finding->message, (unsigned long long)finding->offset);
    return 1;
}

/* Makes the planned copy, which must open and pass the check. */
static inline void copy_apply(struct copy_fixture *f)
{
    const struct exti_span file = exti__span(f->toy.b, f->toy.n);
    const struct exti_request req = {
        .opts = &f->opts, .bind = &f->bind, .bind_count = f->bind.p != NULL};

    f->n = (size_t)exti__plan_size(&f->plan, file.n);
    f->bytes = calloc(1, f->n > file.n ? f->n : file.n);
    assert_non_null(f->bytes);
    memcpy(f->bytes, file.p, file.n);
    exti__plan_apply(&f->plan, f->bytes, file.n);
    assert_ok(exti__pe_open(exti__span(f->bytes, f->n), &f->file, &f->err), &f->err);
    assert_rest_is_kept(f);
    assert_ok(exti__pe_check(file, exti__span(f->bytes, f->n), &req, &f->plan, copy_finding, NULL,
                             &f->err),
              &f->err);
}

/* Also asserts that the same edits give the same plan, and an empty one for the copy. */
static inline void copy_make(struct copy_fixture *f)
{
    const struct exti_span file = exti__span(f->toy.b, f->toy.n);
    struct exti_plan again;

    assert_ok(copy_try(f), &f->err);
    assert_ok(plan_of(f, file, &again), &f->err);
    assert_plans_equal(&f->plan, &again);
    exti__plan_free(&again);
    copy_apply(f);
    assert_nothing_to_do(f, exti__span(f->bytes, f->n));
}

static inline int list_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    FILE *out = user;

    (void)err;
    fprintf(out, "%s%s ", im->delay ? "delay " : "", im->name);
    return 0;
}

static inline int list_export(void *user, const struct pe_export *x, struct exti_error *err)
{
    (void)err;
    if (x->forwarder)
        fprintf(user, "#%u %s=%s ", (unsigned)x->ordinal, x->name, x->forwarder);
    else
        fprintf(user, "#%u %s ", (unsigned)x->ordinal, x->name ? x->name : "-");
    return 0;
}

/* "imports... delay imports... | id | exports" of the copy. */
static inline const char *copy_names(struct copy_fixture *f)
{
    struct pe_exports x;
    size_t n;
    FILE *out;

    free(f->listed);
    out = open_memstream(&f->listed, &n);
    assert_non_null(out);
    assert_ok(exti__pe_imports(&f->file, list_import, out, &f->err), &f->err);
    assert_ok(exti__pe_exports_open(&f->file, &x, &f->err), &f->err);
    fprintf(out, "| %s | ", x.dll ? x.dll : "-");
    assert_ok(exti__pe_exports(&f->file, &x, list_export, out, &f->err), &f->err);
    fclose(out);
    return f->listed;
}

#define OWN_EXPORTS(stem)                                                                          \
    "#5 PyInit_toy #5 toy_alias #7 toy_state #8 - #9 toy_forward=" stem ".PyLong_Type "
#define NAMES(first, id, stem) first " KERNEL32.dll delay WS2_32.dll | " id " | " OWN_EXPORTS(stem)

/* Leaves no room for names in section `i`. */
static inline void fill_section(struct pe_toy *t, size_t i)
{
    const size_t h = ptoy_section(t, i), used = (size_t)ptoy_get(t, h + 8, 4),
                 raw = (size_t)ptoy_get(t, h + 16, 4);

    memset(t->b + t->start[i] + used, 0xee, raw - used);
}

/* Moves the section table to `room` bytes before the end of the headers and drops the MS-DOS
 * stub. */
static inline void tighten_headers(struct pe_toy *t, size_t room)
{
    const size_t head = t->sections - t->nt, table = PTOY_SECTIONS * SECTION_HEADER_SIZE;
    uint8_t sections[PTOY_SECTIONS * SECTION_HEADER_SIZE];
    const size_t moved = t->nt - DOS_HEADER_SIZE;

    memcpy(sections, t->b + t->sections, table);
    memmove(t->b + DOS_HEADER_SIZE, t->b + t->nt, head);
    memset(t->b + DOS_HEADER_SIZE + head, 0, t->headers_end - DOS_HEADER_SIZE - head);
    t->nt -= moved;
    t->optional -= moved;
    t->directories -= moved;
    t->sections = t->headers_end - room - table;
    memcpy(t->b + t->sections, sections, table);
    ptoy_put(t, DOS_E_LFANEW, 4, t->nt);
    ptoy_put(t, t->nt + 20, 2, t->sections - t->optional);
}

#endif
