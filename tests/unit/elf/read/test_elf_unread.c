#include "tests/support/exti_test.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf_format.h"
#include "elf/read/elf_open.h"
#include "elf/read/elf_unread.h"

/* The C library: several large sections of code and data, and all tables. */
static uint8_t *read_libc(struct test *t, size_t *n)
{
    char *out = test_must_run(t, "sh", "-c",
                              "ldd /bin/sh | sed -n 's/.*=> \\(.*libc[.]so[^ ]*\\).*/\\1/p'", NULL);

    out[strcspn(out, "\n")] = 0;
    return (uint8_t *)test_read(t, out, n);
}

static void read_as_zeros(uint8_t *p, const struct exti_unread *u)
{
    for (size_t i = 0; i < u->count; i++)
        memset(p + u->part[i].at, 0, u->part[i].n);
}

static void code_and_data_are_not_read(void **state)
{
    struct test *t = *state;
    struct exti_unread u = {.count = 0};
    struct exti_image whole = {.format = 0}, partial = {.format = 0};
    uint8_t *p;
    size_t n, left = 0;

    p = read_libc(t, &n);
    exti__elf_unread.parts(exti__span(p, n), &u);
    assert_true(u.count > 1);
    for (size_t i = 0; i < u.count; i++) {
        assert_true(!i || u.part[i].at >= u.part[i - 1].at + u.part[i - 1].n);
        left += u.part[i].n;
    }
    assert_true(left > n / 2);
    assert_ok(exti__elf_format.read(exti__span(p, n), &whole, &t->err), &t->err);
    read_as_zeros(p, &u);
    assert_ok(exti__elf_format.read(exti__span(p, n), &partial, &t->err), &t->err);
    assert_int_equal(whole.info.symbol_count, partial.info.symbol_count);
    assert_int_equal(whole.info.needed_count, partial.info.needed_count);
    assert_string_equal(whole.build_id, partial.build_id);
    for (size_t i = 0; i < whole.info.symbol_count; i++)
        assert_ptr_equal(whole.symbols[i].name, partial.symbols[i].name);
    exti__image_clear(&whole);
    exti__image_clear(&partial);
}

/* Moves what `tag` points at into the first unread part, and expects that the reader refuses it
 * rather than take zeros for the table. */
static void assert_table_refused(struct test *t, uint8_t *p, size_t n, int64_t tag)
{
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)p;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(const void *)(p + eh->e_phoff);
    struct exti_unread u = {.count = 0};
    struct elf_file f;

    exti__elf_unread.parts(exti__span(p, n), &u);
    for (size_t i = 0; i < eh->e_phnum; i++) {
        Elf64_Dyn *d = (Elf64_Dyn *)(void *)(p + ph[i].p_offset);

        if (ph[i].p_type != PT_DYNAMIC)
            continue;
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == tag)
                d->d_un.d_ptr = u.part[0].at + 64; /* its segment's address is its offset */
    }
    assert_exti(exti__elf_open(exti__span(p, n), &f, &t->err), EXTI_E_FORMAT, &t->err,
                u.part[0].at + 64);
    assert_says(&t->err, "is in a section of code or data");
}

static void tables_in_code_are_refused(void **state)
{
    static const int64_t tags[] = {DT_STRTAB, DT_SYMTAB, DT_GNU_HASH, DT_VERSYM, DT_VERDEF};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
        size_t n;
        uint8_t *p = read_libc(t, &n);

        assert_table_refused(t, p, n, tags[i]);
    }
}

/* A section of which another header names a byte is read. */
static void shared_sections_are_read(void **state)
{
    static const uint32_t types[] = {SHT_DYNSYM, SHT_STRTAB, SHT_NOTE, SHT_PROGBITS};
    struct test *t = *state;
    size_t n;
    uint8_t *p = read_libc(t, &n);
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)p;
    Elf64_Shdr *sh = (Elf64_Shdr *)(void *)(p + eh->e_shoff);
    struct exti_unread u = {.count = 0}, now = {.count = 0};

    exti__elf_unread.parts(exti__span(p, n), &u);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        sh[0] = (Elf64_Shdr){.sh_type = types[i], .sh_offset = u.part[0].at + 5, .sh_size = 1};
        exti__elf_unread.parts(exti__span(p, n), &now);
        assert_true(now.count < u.count || now.part[0].at != u.part[0].at);
    }
    sh[0] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_offset = u.part[0].at + 5, .sh_size = 1};
    exti__elf_unread.parts(exti__span(p, n), &now);
    assert_int_equal(now.part[0].at, u.part[0].at);
}

/* Debug information is most of a library that is not stripped, and lies in many sections. */
static void debug_sections_are_not_read(void **state)
{
    enum { SECTIONS = 12, BYTES = 20000 };
    struct test *t = *state;
    char *source = test_path(t, "debug.s"), *library = test_path(t, "libdebug.so");
    struct exti_unread u = {.count = 0};
    char text[SECTIONS * 64];
    size_t n = 0, left = 0;
    uint8_t *p;

    for (int i = 0; i < SECTIONS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              ".section .debug_part%d,\"\",@progbits\n.zero %d\n", i, BYTES);
    test_write(source, text, n);
    test_must_run(t, "cc", "-shared", "-nostdlib", "-o", library, source, NULL);
    p = (uint8_t *)test_read(t, library, &n);
    exti__elf_unread.parts(exti__span(p, n), &u);
    for (size_t i = 0; i < u.count; i++)
        left += u.part[i].n;
    assert_int_equal(left, SECTIONS * BYTES);
}

static void files_without_sections_are_read_whole(void **state)
{
    struct test *t = *state;
    struct exti_range table;
    size_t n;
    uint8_t *p = read_libc(t, &n);
    Elf64_Ehdr *eh = (Elf64_Ehdr *)(void *)p;

    assert_true(exti__elf_unread.table(exti__span(p, 4096), n, &table));
    assert_int_equal(table.at, eh->e_shoff);
    assert_int_equal(table.n, eh->e_shnum * sizeof(Elf64_Shdr));
    assert_false(exti__elf_unread.table(exti__span(p, 4096), table.at + table.n - 1, &table));
    assert_false(exti__elf_unread.table(exti__span(p, 40), n, &table));
    eh->e_shoff = UINT64_MAX - 3;
    assert_false(exti__elf_unread.table(exti__span(p, 4096), n, &table));
    eh->e_shnum = 0;
    assert_false(exti__elf_unread.table(exti__span(p, 4096), n, &table));
    eh->e_ident[0] = 0;
    assert_false(exti__elf_unread.table(exti__span(p, 4096), n, &table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(code_and_data_are_not_read),
        exti_test(tables_in_code_are_refused),
        exti_test(shared_sections_are_read),
        exti_test(debug_sections_are_not_read),
        exti_test(files_without_sections_are_read_whole),
    };

    return cmocka_run_group_tests_name("elf/read/elf_unread", tests, NULL, NULL);
}
