/* The page shift on linked files: LLVM's tools print the same of the copy as of the original
 * except for addresses, which are shifted. */
#define _GNU_SOURCE
#include "macho/read/macho_fixups.h"
#include "macho/read/macho_rebase.h"
#include "tests/support/exti_test.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/macho/macho_shift_work.h"

#define P 0x4000u

static struct test *group; /* removes the folder of linked files */
static bool linked;

static const char *const names[] = {"x86_64.opcodes.so",    "arm64.opcodes.so",
                                    "x86_64.chained.so",    "arm64.chained.so",
                                    "x86_64.offsets.dylib", "arm64.offsets.dylib"};

static int link_inputs(void **state)
{
    if (test_setup((void **)&group))
        return -1;
    (void)state;
    linked = test_have("clang") && test_have("ld64.lld") && test_have("llvm-objdump") &&
             test_have("llvm-nm");
    if (!linked)
        return 0;
    test_path(group, "x"); /* makes the folder */
    test_must_run(group, "tests/unit/macho/macho_shift_inputs.sh", group->dir, NULL);
    return 0;
}

static int remove_inputs(void **state)
{
    (void)state;
    return test_teardown((void **)&group);
}

/* ---- what LLVM's tools print ----------------------------------------------------------------- */

/* Which of a line's hexadecimal numbers are addresses, one bit each. */
typedef unsigned addresses_fn(const char *line);

static unsigned first_number(const char *line)
{
    (void)line;
    return 1;
}

static unsigned of_export(const char *line)
{
    return strstr(line, "[absolute]") || strstr(line, "[re-export") ? 0 : 1;
}

static unsigned of_unwind(const char *line)
{
    if (strstr(line, "base function offset="))
        return 2;
    if (strstr(line, "2nd level page offset="))
        return 1;
    if (strstr(line, "LSDA offset="))
        return 3;
    return strstr(line, "function offset=") || strstr(line, "personality[") ? 1 : 0;
}

static unsigned of_chain(const char *line)
{
    return strstr(line, "segment_offset") ? 1 : 0;
}

static unsigned of_fixup(const char *line)
{
    return strstr(line, " rebase ") ? 7 : 1;
}

/* llvm-nm -ap prints a value, its type, and for debugging symbols section and kind.  Linkers
 * write either the address of its BNSYM or a size into an ENSYM. */
static unsigned of_symbol(const char *line)
{
    static uint64_t begin;
    char type = 0, kind[16] = "";
    unsigned sect = 0;
    uint64_t value = 0;

    if (sscanf(line, "%" SCNx64 " - %x %*x %15s", &value, &sect, kind) == 3) {
        begin = strcmp(kind, "BNSYM") != 0 ? begin : value;
        return value && sect && strcmp(kind, "OSO") != 0 &&
               (strcmp(kind, "ENSYM") != 0 || value == begin);
    }
    return sscanf(line, "%*x %c ", &type) == 1 && strchr("TtDdSsBb", type);
}

/* Copies `in` with its addresses shifted, in lower case, with single spaces.  Numbers start with
 * 0x or, if `bare`, with the line. */
static void move_addresses(struct test *t, const char *in, uint64_t shift, bool bare,
                           addresses_fn *addresses, char **out)
{
    char *to = *out = test_alloc(t, strlen(in) * 2 + 64);

    while (*in) {
        const char *end = strchrnul(in, '\n');
        char *line = strndup(in, (size_t)(end - in));
        const bool is_title = end > in && end[-1] == ':' && *in == '/';
        unsigned mask = addresses(line);

        free(line);
        for (const char *at = in; at < end && !is_title;) {
            const bool prefixed = !bare && at[0] == '0' && at[1] == 'x';
            char *after;

            if (prefixed || (bare && at == in && isxdigit((unsigned char)*at))) {
                const uint64_t v = strtoull(at, &after, 16);
                const int width = (int)(after - at) - (prefixed ? 2 : 0);

                /* A number without padding has no fixed width. */
                to += sprintf(to, "%s%0*" PRIx64, prefixed ? "0x" : "",
                              at[prefixed ? 2 : 0] == '0' ? width : 1, mask & 1 ? v + shift : v);
                mask >>= 1;
                at = after;
                continue;
            }
            if (!isspace((unsigned char)*at) || (to > *out && to[-1] != ' '))
                *to++ = (char)tolower((unsigned char)(isspace((unsigned char)*at) ? ' ' : *at));
            at++;
        }
        *to++ = '\n';
        in = *end ? end + 1 : end;
    }
}

static const struct {
    const char *program, *options[3];
    bool bare;
    addresses_fn *addresses;
} oracles[] = {
    {"llvm-objdump", {"--macho", "--rebase"}, false, first_number},
    {"llvm-objdump", {"--macho", "--bind"}, false, first_number},
    {"llvm-objdump", {"--macho", "--lazy-bind"}, false, first_number},
    {"llvm-objdump", {"--macho", "--weak-bind"}, false, first_number},
    {"llvm-objdump", {"--macho", "--exports-trie"}, false, of_export},
    {"llvm-objdump", {"--macho", "--chained-fixups"}, false, of_chain},
    {"llvm-objdump", {"--macho", "--dyld-info"}, false, of_fixup},
    {"llvm-objdump", {"--macho", "--unwind-info"}, false, of_unwind},
    {"llvm-objdump", {"--macho", "--function-starts"}, true, first_number},
    {"llvm-objdump", {"--macho", "--data-in-code"}, false, first_number},
    {"llvm-nm", {"-ap"}, true, of_symbol},
};

static void compare_tools(struct test *t, const char *before, const char *after, uint64_t shift)
{
    for (size_t i = 0; i < ARRAY_SIZE(oracles); i++) {
        const char *options[2] = {oracles[i].options[0], oracles[i].options[1]};
        const char *files[2] = {before, after};
        char *text[2], *plain;

        for (size_t k = 0; k < 2; k++) {
            plain = options[1] ? test_must_run(t, oracles[i].program, options[0], options[1],
                                               files[k], NULL)
                               : test_must_run(t, oracles[i].program, options[0], files[k], NULL);
            move_addresses(t, plain, k ? 0 : shift, oracles[i].bare, oracles[i].addresses,
                           &text[k]);
        }
        if (strcmp(text[0], text[1]) != 0) {
            test_write(test_path(t, "expected"), text[0], strlen(text[0]));
            test_write(test_path(t, "printed"), text[1], strlen(text[1]));
            test_run(t, &plain, "diff", test_path(t, "expected"), test_path(t, "printed"), NULL);
            print_message("%.3000s\n", plain);
            fail_msg("%s %s: the copy differs", oracles[i].program, options[options[1] ? 1 : 0]);
        }
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void compare_layout(const struct macho_file *old, const struct macho_file *new,
                           uint64_t shift)
{
    assert_int_equal(old->segment_count, new->segment_count);
    assert_int_equal(old->section_count, new->section_count);
    assert_int_equal(new->text->vmsize, old->text->vmsize + shift);
    assert_int_equal(new->text->filesize, old->text->filesize + shift);
    assert_int_equal(new->text->vmaddr, old->text->vmaddr);
    for (size_t i = 0; i < old->segment_count; i++) {
        const struct macho_segment *a = &old->segments[i], *b = &new->segments[i];

        if (a == old->text)
            continue;
        assert_int_equal(b->vmaddr, a->vmaddr + shift);
        assert_int_equal(b->fileoff, a->fileoff + shift);
        if (a == old->linkedit)
            continue;
        assert_int_equal(b->vmsize, a->vmsize);
        assert_int_equal(b->filesize, a->filesize);
    }
    for (size_t i = 0; i < old->section_count; i++) {
        const struct macho_section *a = &old->sections[i], *b = &new->sections[i];

        assert_int_equal(b->addr, a->addr + shift);
        assert_int_equal(b->offset, a->offset ? a->offset + shift : 0);
        assert_int_equal(b->size, a->size);
    }
}

/* Bytes that may differ between a file and its copy. */
struct changes {
    const struct macho_file *old, *new;
    uint8_t *may; /* per byte of the old file */
};

static int see_rebase(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                      struct exti_error *err)
{
    struct changes *c = user;
    const uint64_t at = c->old->segments[segment].fileoff + offset;
    uint64_t a, b;

    (void)type;
    (void)err;
    memcpy(&a, c->old->file.p + at, 8);
    memcpy(&b, c->new->file.p + at + P, 8);
    assert_int_equal(b, a + P);
    memset(c->may + at, 1, 8);
    return 0;
}

static int see_fixup(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct changes *c = user;

    (void)err;
    if (!x->is_bind)
        memset(c->may + x->offset, 1, 8);
    return 0;
}

static void compare_bodies(struct test *t, const struct macho_file *old,
                           const struct macho_file *new)
{
    struct changes c = {.old = old, .new = new, .may = test_alloc(t, old->file.n)};
    struct macho_chained chained;

    assert_ok(exti__macho_rebases(old, see_rebase, &c, &t->err), &t->err);
    if (old->pieces[MACHO_CHAINED_FIXUPS].s.n) {
        assert_ok(exti__macho_chained_open(old, &chained, &t->err), &t->err);
        assert_ok(exti__macho_fixups(old, &chained, see_fixup, &c, &t->err), &t->err);
    }
    for (size_t i = 0; i < old->section_count; i++) {
        const struct macho_section *s = &old->sections[i];

        if (!strcmp(s->name, "__init_offsets")) {
            for (uint64_t at = s->offset; at < s->offset + s->size; at += 4) {
                uint32_t a, b;

                memcpy(&a, old->file.p + at, 4);
                memcpy(&b, new->file.p + at + P, 4);
                assert_int_equal(b, a + P);
            }
        }
        if (!strcmp(s->name, "__unwind_info") || !strcmp(s->name, "__init_offsets"))
            memset(c.may + s->offset, 1, s->size);
    }
    for (uint64_t at = old->room_end; at < old->linkedit->fileoff; at++)
        if (!c.may[at] && old->file.p[at] != new->file.p[at + P])
            fail_msg("byte 0x%" PRIx64 " changed", at);
}

/* Shifts `bytes` and compares the copy with the original in every way. */
static void shift_and_compare(struct test *t, const char *bytes, size_t n)
{
    const char *before = test_path(t, "before"), *after = test_path(t, "after");
    struct exti_buf copy = exti__buf(1 << 28);
    struct macho_file new;
    struct work w;
    char *text;

    work_start(&w, bytes, n, P, &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    work_assemble(&w, &copy, &t->err);
    text = test_alloc(t, copy.n);
    memcpy(text, copy.p, copy.n);
    test_write(before, bytes, n);
    test_write(after, text, copy.n);
    assert_ok(exti__macho_open(exti__span(text, copy.n), &new, &t->err), &t->err);
    compare_layout(&w.f, &new, P);
    compare_bodies(t, &w.f, &new);
    exti__macho_close(&new);
    exti__buf_free(&copy);
    work_finish(&w);
    compare_tools(t, before, after, P);
}

static char *input(struct test *t, const char *name, size_t *n)
{
    return test_read(t, test_format(t, "%s/%s", group->dir, name), n);
}

static void shift_moves_every_address_and_nothing_else(void **state)
{
    struct test *t = *state;

    if (!linked)
        skip_because("clang, ld64.lld, llvm-objdump or llvm-nm is not installed");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t n;
        char *bytes = input(t, names[i], &n);

        shift_and_compare(t, bytes, n);
    }
}

/* The code finds its file by the address of its header, and the targets of its bindings in
 * there. */
static void shifted_code_runs_and_finds_its_header(void **state)
{
    static const char *const files[] = {"x86_64.header.chained.dylib",
                                        "x86_64.header.opcodes.dylib"};
    struct test *t = *state;
    char *loader = test_format(t, "%s/macho_load", group->dir);

    if (!linked)
        skip_because("clang, ld64.lld, llvm-objdump or llvm-nm is not installed");
    if (access(loader, X_OK) != 0)
        skip_because("this machine does not run x86-64 code");
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        const char *after = test_path(t, "after");
        size_t n;
        char *bytes = input(t, files[i], &n);

        shift_and_compare(t, bytes, n);
        assert_string_equal(test_must_run(t, loader, test_format(t, "%s/%s", group->dir, files[i]),
                                          ":_find_header", NULL),
                            "11\n");
        assert_string_equal(test_must_run(t, loader, after, ":_find_header", NULL), "11\n");
    }
}

static void shift_reports_lack_of_memory(void **state)
{
    struct test *t = *state;

    if (!linked)
        skip_because("clang, ld64.lld, llvm-objdump or llvm-nm is not installed");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int rc = EXTI_E_NOMEM;
        size_t n;
        char *bytes = input(t, names[i], &n);

        for (long k = 0; rc; k++) {
            struct work w;

            memset(&t->err, 0, sizeof t->err);
            work_start(&w, bytes, n, P, &t->err);
            exti__mem_fail_after(k);
            rc = exti__macho_shift(&w.b, &t->err);
            exti__mem_fail_after(-1);
            work_finish(&w);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &t->err, ANY_OFFSET);
            assert_true(k < 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(shift_moves_every_address_and_nothing_else),
        exti_test(shifted_code_runs_and_finds_its_header),
        exti_test(shift_reports_lack_of_memory),
    };

    return cmocka_run_group_tests_name("macho/macho_shift", tests, link_inputs, remove_inputs);
}
