#include "tests/support/exti_test.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf_format.h"
#include "elf/read/elf_open.h"
#include "elf/read/elf_reloc.h"
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
    exti__elf_find_unread(exti__span(p, n), &u);
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

    exti__elf_find_unread(exti__span(p, n), &u);
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
    assert_says(&t->err, "is in code, data or relative relocations");
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

    exti__elf_find_unread(exti__span(p, n), &u);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        sh[0] = (Elf64_Shdr){.sh_type = types[i], .sh_offset = u.part[0].at + 5, .sh_size = 1};
        exti__elf_find_unread(exti__span(p, n), &now);
        assert_true(now.count < u.count || now.part[0].at != u.part[0].at);
    }
    sh[0] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_offset = u.part[0].at + 5, .sh_size = 1};
    exti__elf_find_unread(exti__span(p, n), &now);
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
    exti__elf_find_unread(exti__span(p, n), &u);
    for (size_t i = 0; i < u.count; i++)
        left += u.part[i].n;
    assert_int_equal(left, SECTIONS * BYTES);
}

/* What makes files of 32 and of 64 bits; only x86 has both, the narrow ones with DT_REL. */
#ifdef __aarch64__
enum { NARROWEST = 1 };
static const char *const assembler[] = {NULL, "-mabi=lp64"};
static const char *const linker[] = {NULL, "aarch64linux"};
#else
enum { NARROWEST = 0 };
static const char *const assembler[] = {"--32", "--64"};
static const char *const linker[] = {"elf_i386", "elf_x86_64"};
#endif

/* Assembles a library with `count` relative relocations and one that names a symbol. */
static uint8_t *build_relocated(struct test *t, bool wide, int count, size_t *n)
{
    char *source = test_path(t, "reloc.s"), *object = test_path(t, "reloc.o");
    char *library = test_path(t, "libreloc.so"), text[200];
    const char *word = wide ? ".quad" : ".long";

    snprintf(text, sizeof text, ".data\nhere: .rept %d\n%s here\n.endr\n%s elsewhere\n", count,
             word, word);
    test_write(source, text, strlen(text));
    test_must_run(t, "as", assembler[wide], "-o", object, source, NULL);
    /* With DT_HASH the number of symbols does not depend on the relocations that tests change. */
    test_must_run(t, "ld", "-m", linker[wide], "-shared", "--hash-style=sysv", "-o", library,
                  object, NULL);
    return (uint8_t *)test_read(t, library, n);
}

static uint64_t tag_value(struct test *t, uint8_t *p, size_t n, int64_t tag)
{
    struct elf_file f;
    uint64_t value;

    assert_ok(exti__elf_open(exti__span(p, n), &f, &t->err), &t->err);
    assert_non_null(exti__elf_tag(&f, tag));
    value = exti__elf_tag(&f, tag)->d_un.d_val;
    exti__elf_close(&f);
    return value;
}

static bool has_part(uint8_t *p, size_t n, uint64_t at, uint64_t size)
{
    struct exti_unread u = {.count = 0};

    exti__elf_find_unread(exti__span(p, n), &u);
    for (size_t i = 0; i < u.count; i++)
        if (u.part[i].at == at && u.part[i].n == size)
            return true;
    return false;
}

static bool count_named(void *user, const struct elf_reloc *r)
{
    *(size_t *)user += r->symbol != 0;
    return true;
}

static void relative_relocations_are_not_read(void **state)
{
    enum { COUNT = 3000 };
    struct test *t = *state;

    for (int wide = NARROWEST; wide < 2; wide++) {
        const size_t entry = wide ? 24 : 8;
        struct exti_unread u = {.count = 0};
        size_t n, named = 0;
        uint8_t *p = build_relocated(t, wide, COUNT, &n);
        const uint64_t at = tag_value(t, p, n, wide ? DT_RELA : DT_REL);
        struct elf_file f;

        assert_true(has_part(p, n, at, COUNT * entry)); /* the address is the offset */
        exti__elf_find_unread(exti__span(p, n), &u);
        read_as_zeros(p, &u);
        assert_ok(exti__elf_open(exti__span(p, n), &f, &t->err), &t->err);
        assert_ok(exti__elf_each_reloc(&f, count_named, &named, &t->err), &t->err);
        assert_int_equal(named, 1);
        exti__elf_close(&f);

        p = build_relocated(t, wide, 500, &n);
        assert_false(has_part(p, n, tag_value(t, p, n, wide ? DT_RELA : DT_REL), 500 * entry));
    }
}

/* Sets the value of the tag. */
static void set_tag(struct test *t, uint8_t *p, size_t n, int64_t tag, uint64_t value)
{
    struct elf_file f;
    Elf64_Dyn *d;

    assert_ok(exti__elf_open(exti__span(p, n), &f, &t->err), &t->err);
    d = (Elf64_Dyn *)(void *)(p + exti__elf_dyn_offset(&f, 0));
    while (d->d_tag != tag)
        d++;
    d->d_un.d_val = value;
    exti__elf_close(&f);
}

static size_t section_of_type(uint8_t *p, uint32_t type)
{
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)p;
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(const void *)(p + eh->e_shoff);
    size_t i = 0;

    while (sh[i].sh_type != type)
        i++;
    return eh->e_shoff + i * sizeof *sh;
}

/* A wrong count leaves nothing out, and so do headers that give the bytes another meaning. */
static void doubtful_relocations_are_read(void **state)
{
    enum { COUNT = 3000 };
    struct test *t = *state;
    size_t n, at;
    uint8_t *p = build_relocated(t, true, COUNT, &n);
    const uint64_t table = tag_value(t, p, n, DT_RELA);
    Elf64_Shdr *sh, was;

    set_tag(t, p, n, DT_RELACOUNT, COUNT + 1);
    assert_true(has_part(p, n, table, (COUNT + 1) * sizeof(Elf64_Rela)));
    set_tag(t, p, n, DT_RELACOUNT, COUNT + 2);
    assert_false(has_part(p, n, table, (COUNT + 2) * sizeof(Elf64_Rela)));
    set_tag(t, p, n, DT_RELACOUNT, UINT64_MAX / 8);
    assert_false(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
    set_tag(t, p, n, DT_RELACOUNT, COUNT);
    assert_true(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));

    set_tag(t, p, n, DT_RELA, UINT64_MAX - 100);
    assert_false(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
    set_tag(t, p, n, DT_RELA, table);

    at = section_of_type(p, SHT_RELA);
    sh = (Elf64_Shdr *)(void *)(p + at);
    was = *sh;
    sh->sh_size = 8; /* it no longer has all of them */
    assert_false(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
    *sh = was;
    sh->sh_type = SHT_STRTAB;
    assert_false(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
    *sh = was;
    sh->sh_offset = UINT64_MAX - 3; /* no section header is believed then */
    assert_false(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
    *sh = was;
    assert_true(has_part(p, n, table, COUNT * sizeof(Elf64_Rela)));
}

/* A string table among the relocations is refused, whether these were read or not. */
static void tables_among_relocations_are_refused(void **state)
{
    struct test *t = *state;
    size_t n;
    uint8_t *p = build_relocated(t, true, 3000, &n);
    const uint64_t table = tag_value(t, p, n, DT_RELA);
    struct elf_file f;

    set_tag(t, p, n, DT_STRTAB, table + 48);
    assert_exti(exti__elf_open(exti__span(p, n), &f, &t->err), EXTI_E_FORMAT, &t->err, table + 48);
    assert_says(&t->err, "is in code, data or relative relocations");
}

/* The unwinder's index is a large section in a segment of its own. */
static void unwind_index_is_not_read(void **state)
{
    struct test *t = *state;
    size_t n;
    uint8_t *p = read_libc(t, &n);
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)(const void *)p;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(const void *)(p + eh->e_phoff);

    while (ph->p_type != PT_GNU_EH_FRAME)
        ph++;
    assert_true(ph->p_filesz > 16384);
    assert_true(has_part(p, n, ph->p_offset, ph->p_filesz));
}

static void files_without_sections_are_read_whole(void **state)
{
    struct test *t = *state;
    struct exti_range table[EXTI_UNREAD_TABLES];
    size_t n;
    uint8_t *p = read_libc(t, &n);
    Elf64_Ehdr *eh = (Elf64_Ehdr *)(void *)p;
    Elf64_Phdr *ph = (Elf64_Phdr *)(void *)(p + eh->e_phoff);

    while (ph->p_type != PT_DYNAMIC)
        ph++;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n, table), 2);
    assert_int_equal(table[0].at, eh->e_shoff);
    assert_int_equal(table[0].n, eh->e_shnum * sizeof(Elf64_Shdr));
    assert_int_equal(table[1].at, ph->p_offset);
    assert_int_equal(table[1].n, ph->p_filesz);
    ph->p_filesz = n;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n, table), 1);
    n = table[0].at + table[0].n - 1;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n, table), 0);
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 40), n + 1, table), 0);
    eh->e_shoff = UINT64_MAX - 3;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n + 1, table), 0);
    eh->e_shnum = 0;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n + 1, table), 0);
    eh->e_ident[0] = 0;
    assert_int_equal(exti__elf_unread.tables(exti__span(p, 4096), n + 1, table), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(code_and_data_are_not_read),
        exti_test(tables_in_code_are_refused),
        exti_test(shared_sections_are_read),
        exti_test(debug_sections_are_not_read),
        exti_test(relative_relocations_are_not_read),
        exti_test(doubtful_relocations_are_read),
        exti_test(tables_among_relocations_are_refused),
        exti_test(unwind_index_is_not_read),
        exti_test(files_without_sections_are_read_whole),
    };

    return cmocka_run_group_tests_name("elf/read/elf_unread", tests, NULL, NULL);
}
