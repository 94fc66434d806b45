#include "tests/unit/elf/read/elf_toy_read.h"

static void odd_but_legal_files_are_read(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    elf_toy_make(t, true, false);
    toy_put(t, 40, 8, 0xffffffff); /* e_shoff far outside: loaders do not look */
    assert_ok(read_toy(f), &f->err);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    toy_put(t, t->phdr + 48, 8, 0); /* p_align 0 */
    assert_ok(read_toy(f), &f->err);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    toy_put(t, t->note, 4, 0xffffffff); /* a malformed note */
    assert_ok(read_toy(f), &f->err);
    assert_null(f->image.build_id);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    toy_put(t, 60, 2, 0); /* extended numbering: the count is in section 0 */
    toy_put(t, t->shdr + 32, 8, 5);
    assert_ok(read_toy(f), &f->err);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    toy_put(t, 60, 2, 0); /* and section 0 lies outside the file */
    toy_put(t, 40, 8, t->n - 8);
    assert_ok(read_toy(f), &f->err);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    t->b[t->sym + 2 * 24 + 5] = STV_HIDDEN;
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 2);
    assert_symbol(&f->image, 1, "unique", NULL, EXTI_SYM_EXPORT | EXTI_SYM_UNIQUE);
    exti__image_clear(&f->image);

    elf_toy_make(t, true, false);
    t->b[t->sym + 2 * 24 + 4] = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 2);
    exti__image_clear(&f->image);

    elf_toy_make(t, false, true);
    toy_put(t, 18, 2, EM_S390);
    assert_ok(read_toy(f), &f->err);
    assert_string_equal(f->image.info.machine, "s390");
}

struct corruption {
    const char *what; /* part of the message */
    size_t at, width;
    uint64_t value;
    int code;
    uint64_t offset;
};

static void assert_corruptions(struct fixture *f, bool wide, bool big, const struct corruption *c,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        elf_toy_make(&f->toy, wide, big);
        toy_put(&f->toy, c[i].at, c[i].width, c[i].value);
        assert_exti(read_toy(f), c[i].code, &f->err, c[i].offset);
        assert_says(&f->err, c[i].what);
    }
}

static void corrupt_headers_are_reported(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    for (int big = 0; big < 2; big++) {
        elf_toy_make(t, true, big);
        const size_t ph = t->phdr, dynamic = ph + 2 * 56;
        const struct corruption table[] = {
            {"not an ELF file", 0, 1, 0x7e, EXTI_E_FORMAT, 0},
            {"class 7", EI_CLASS, 1, 7, EXTI_E_FORMAT, EI_CLASS},
            {"byte order", EI_DATA, 1, 3, EXTI_E_FORMAT, EI_DATA},
            {"version", EI_VERSION, 1, 2, EXTI_E_FORMAT, EI_VERSION},
            {"relocatable object", 16, 2, ET_REL, EXTI_E_UNSUPPORTED, 16},
            {"fixed-address program", 16, 2, ET_EXEC, EXTI_E_UNSUPPORTED, 16},
            {"core dump", 16, 2, ET_CORE, EXTI_E_UNSUPPORTED, 16},
            {"an unknown type", 16, 2, 0xfe00, EXTI_E_UNSUPPORTED, 16},
            {"e_phentsize", 54, 2, 32, EXTI_E_FORMAT, 54},
            {"no program headers", 56, 2, 0, EXTI_E_UNSUPPORTED, 56},
            {"extended numbering", 56, 2, PN_XNUM, EXTI_E_UNSUPPORTED, 56},
            {"program header table", 56, 2, 0xfffe, EXTI_E_FORMAT, ph},
            {"program header table", 32, 8, 0x8000, EXTI_E_FORMAT, 0x8000},
            {"program header table", 32, 8, UINT64_MAX, EXTI_E_FORMAT, UINT64_MAX},
            {"PT_LOAD", ph + 32, 8, 0x8000, EXTI_E_FORMAT, ph},               /* over p_memsz */
            {"PT_LOAD", ph + 40, 8, UINT64_MAX, EXTI_E_UNSUPPORTED, ph + 56}, /* over the next */
            {"address space", ph + 56 + 40, 8, UINT64_MAX, EXTI_E_FORMAT, ph + 56},
            {"p_align", ph + 48, 8, 3, EXTI_E_FORMAT, ph},
            {"p_align", ph + 56 + 16, 8, 0x2601, EXTI_E_FORMAT, ph + 56},
            {"ascending", ph + 16, 8, 0x3000, EXTI_E_UNSUPPORTED, ph + 56},
            {"PT_LOAD", ph + 8, 8, 0x10000, EXTI_E_FORMAT, 0x10000},
            {"no PT_DYNAMIC", dynamic, 4, PT_NULL, EXTI_E_UNSUPPORTED, ph},
            {"second PT_DYNAMIC", ph + 3 * 56, 4, PT_DYNAMIC, EXTI_E_FORMAT, ph + 3 * 56},
            {"debug file", dynamic + 32, 8, 0, EXTI_E_UNSUPPORTED, ph},
            {"too small", dynamic + 32, 8, 15, EXTI_E_FORMAT, dynamic},
            {"PT_DYNAMIC", dynamic + 32, 8, 0x4000, EXTI_E_FORMAT, TOY_DATA},
            {"p_offset", dynamic + 8, 8, TOY_DATA + 8, EXTI_E_FORMAT, dynamic},
            {"no PT_LOAD", dynamic + 16, 8, 0x9000, EXTI_E_FORMAT, TOY_DATA},
            {"debug file", t->shdr + 64 + 4, 4, SHT_NOBITS, EXTI_E_UNSUPPORTED, ph},
        };

        assert_corruptions(f, true, big, table, ARRAY_SIZE(table));
    }
    elf_toy_make(t, true, false);
    toy_put(t, t->phdr, 4, PT_NULL);
    toy_put(t, t->phdr + 56, 4, PT_NULL);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, t->phdr);
    assert_says(&f->err, "no PT_LOAD: a loader would map nothing");

    /* libelf refuses a number of sections that does not fit 32 bits. */
    elf_toy_make(t, true, false);
    toy_put(t, 60, 2, 0);
    toy_put(t, t->shdr + 32, 8, (uint64_t)1 << 32);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "ELF header: libelf: ");
}

static void corrupt_dynamic_structures_are_reported(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    for (int wide = 0; wide < 2; wide++) {
        elf_toy_make(t, wide, false);
        const size_t w = toy_word(t), strtab = value_of(t, DT_STRTAB),
                     strsz = value_of(t, DT_STRSZ);
        const size_t bloom = t->gnu + 16, bucket = bloom + w;
        const uint64_t end = t->verdef + 28;
        const struct corruption table[] = {
            {"no DT_STRTAB", strtab - w, w, DT_DEBUG, EXTI_E_FORMAT, TOY_DATA},
            {"no DT_STRSZ", strsz - w, w, DT_DEBUG, EXTI_E_FORMAT, TOY_DATA},
            {"DT_STRTAB", strtab, w, 0x1800, EXTI_E_FORMAT, TOY_DATA},
            {"DT_STRTAB", strsz, w, 0x1000, EXTI_E_FORMAT, t->str},
            {"is not terminated", strsz, w, 5, EXTI_E_FORMAT, t->str},
            {"is not terminated", strsz, w, 0, EXTI_E_FORMAT, t->str},
            {"no DT_SYMTAB", value_of(t, DT_SYMTAB) - w, w, DT_DEBUG, EXTI_E_FORMAT, TOY_DATA},
            {"DT_SYMENT", value_of(t, DT_SYMENT), w, 8, EXTI_E_FORMAT, TOY_DATA},
            {"DT_SYMTAB", t->hash + 4, 4, 30, EXTI_E_FORMAT, t->sym},
            {"DT_HASH chains", t->hash + 4, 4, 0x10000, EXTI_E_FORMAT, t->hash + 12},
            {"DT_HASH buckets", t->hash, 4, 0x10000000, EXTI_E_FORMAT, t->hash + 8},
            {"no buckets", t->hash, 4, 0, EXTI_E_FORMAT, t->hash},
            {"DT_HASH", value_of(t, DT_HASH), w, end - 4, EXTI_E_FORMAT, end - 4},
            {"DT_GNU_HASH", value_of(t, DT_GNU_HASH), w, end - 8, EXTI_E_FORMAT, end},
            {"DT_HASH", value_of(t, DT_HASH), w, 0xffff, EXTI_E_FORMAT, TOY_DATA},
            {"0 buckets", t->gnu, 4, 0, EXTI_E_FORMAT, t->gnu},
            {"buckets", t->gnu, 4, 0x7fffffff, EXTI_E_FORMAT, bucket},
            {"bloom", t->gnu + 8, 4, 3, EXTI_E_FORMAT, t->gnu},
            {"bloom", t->gnu + 8, 4, 0x10000, EXTI_E_FORMAT, bloom},
            {"shift", t->gnu + 12, 4, 32, EXTI_E_FORMAT, t->gnu},
            {"before the first hashed symbol", bucket, 4, 1, EXTI_E_FORMAT, bucket},
            {"is not terminated", bucket, 4, 0xffff, EXTI_E_FORMAT, bucket + 4},
            {"DT_VERSYM", value_of(t, DT_VERSYM), w, end - 4, EXTI_E_FORMAT, end - 4},
            {"DT_NEEDED", value_of(t, DT_NEEDED), w, 0x1000, EXTI_E_FORMAT, t->str + 0x1000},
            {"DT_SONAME", value_of(t, DT_SONAME), w, t->str_size, EXTI_E_FORMAT,
             t->str + t->str_size},
            {"symbol name", t->sym + (wide ? 24 : 16), 4, 0x1000, EXTI_E_FORMAT, t->str + 0x1000},
            {"DT_VERNEED", t->verneed + 8, 4, 0x1000, EXTI_E_FORMAT, t->verneed + 0x1000},
            {"DT_VERNEED", t->verneed + 12, 4, 0x1000, EXTI_E_FORMAT, t->verneed + 0x1000},
            {"DT_VERDEF", t->verdef + 12, 4, 0x1000, EXTI_E_FORMAT, t->verdef + 0x1000},
            {"version name", t->verneed + 24, 4, 0x1000, EXTI_E_FORMAT, t->str + 0x1000},
        };

        assert_corruptions(f, wide, false, table, ARRAY_SIZE(table));
    }
}

static void every_truncation_is_reported(void **state)
{
    struct fixture *f = *state;

    for (int wide = 0; wide < 2; wide++) {
        size_t whole;

        elf_toy_make(&f->toy, wide, true);
        whole = f->toy.shdr;
        for (size_t n = 0; n < whole; n++) {
            f->toy.n = n;
            assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
        }
    }
}

static void running_out_of_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    int rc = EXTI_E_NOMEM;

    elf_toy_make(&f->toy, true, false);
    for (long n = 0; rc == EXTI_E_NOMEM; n++) {
        assert_true(n < 100);
        exti__mem_fail_after(n);
        rc = read_toy(f);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
        exti__image_clear(&f->image);
    }
    assert_ok(rc, &f->err);
}

static void probe_looks_at_the_magic_only(void **state)
{
    (void)state;
    assert_true(exti__elf_format.probe(exti__span("\x7f"
                                                  "ELF",
                                                  4)));
    assert_false(exti__elf_format.probe(exti__span("\x7f"
                                                   "EL",
                                                   3)));
    assert_false(exti__elf_format.probe(exti__span("!<arch>\n", 8)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(odd_but_legal_files_are_read),
        read_test(corrupt_headers_are_reported),
        read_test(corrupt_dynamic_structures_are_reported),
        read_test(every_truncation_is_reported),
        read_test(running_out_of_memory_is_reported),
        read_test(probe_looks_at_the_magic_only),
    };

    return cmocka_run_group_tests_name("elf/elf_open", tests, NULL, NULL);
}
