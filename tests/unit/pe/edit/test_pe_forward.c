#include "tests/unit/pe/pe_copy.h"

static const char *const exports[] = {"PyList_New", "PyLong_Type", "PyModule_Create2", NULL};

#define FORWARDED(stem)                                                                            \
    "#5 PyList_New=" stem ".PyList_New #6 PyLong_Type=" stem                                       \
    ".PyLong_Type #7 PyModule_Create2=" stem ".PyModule_Create2 "

static void make_stable_abi(struct copy_fixture *f, struct pe_toy_opts o)
{
    o.exports = exports;
    o.forward = "python311";
    o.id = "python3.dll";
    o.api = "KERNEL32.dll";
    pe_toy_make(&f->toy, o);
}

static uint32_t directory(const struct copy_fixture *f, size_t field)
{
    const struct pe_directory_entry *d = &f->file.directories[IMAGE_DIRECTORY_ENTRY_EXPORT];

    return field ? d->size : d->rva;
}

static void short_forwarders_are_set_in_place(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    copy_replace(f, "Python311.DLL", "k3.dll");
    make_stable_abi(f, (struct pe_toy_opts){.low = true, .checksum = true});
    copy_make(f);
    assert_string_equal(
        copy_names(f),
        "KERNEL32.dll KERNEL32.dll delay WS2_32.dll | python3.dll | " FORWARDED("k3"));
    assert_memory_equal(f->bytes + t->forwarder, "k3.PyList_New\0\0\0\0\0\0\0", 21);
    assert_memory_equal(f->bytes + t->exports, t->b + t->exports, t->id - t->exports);
}

static void long_forwarders_move_with_their_directory(void **state)
{
    static const struct pe_toy_opts kinds[] = {
        {0}, {.full = true}, {.full = true, .room = 4}, {.narrow = true, .full = true}};
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;
    const size_t size = 40 + 4 * 3 + sizeof "python311-context-4711.PyList_New" +
                        sizeof "python311-context-4711.PyLong_Type" +
                        sizeof "python311-context-4711.PyModule_Create2";

    copy_replace(f, "python311", LONGER);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct pe_exports x;

        make_stable_abi(f, kinds[i]);
        copy_make(f);
        assert_string_equal(copy_names(f),
                            "KERNEL32.dll KERNEL32.dll delay WS2_32.dll | python3.dll | " FORWARDED(
                                "python311-context-4711"));
        assert_int_equal(directory(f, 1), size);
        assert_int_equal(directory(f, 0) % 4, 0);
        assert_ok(exti__pe_exports_open(&f->file, &x, &f->err), &f->err);
        assert_int_equal(x.functions_rva, x.rva + 40);
        assert_int_equal(x.names_rva, ptoy_rva(t, t->names));
        assert_int_equal(x.ordinals_rva, ptoy_rva(t, t->ordinals));
        assert_memory_equal(f->bytes + x.at + 12, t->b + t->exports + 12, 16);
    }
}

/* The new name lies behind the directory or in the place of the old one. */
static void the_exported_name_moves_with_its_directory(void **state)
{
    static const char *const ids[] = {"py3.dll", "python3-context-4711.dll", LONGER};
    struct copy_fixture *f = *state;

    copy_replace(f, "python311", LONGER);
    copy_replace(f, "kernel32", "kernel32-context-4711.dll");
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        char names[400];

        f->opts.id = ids[i];
        make_stable_abi(f, (struct pe_toy_opts){.full = true, .checksum = true});
        copy_make(f);
        snprintf(names, sizeof names,
                 "kernel32-context-4711.dll kernel32-context-4711.dll delay WS2_32.dll | %s "
                 "| " FORWARDED("python311-context-4711"),
                 ids[i]);
        assert_string_equal(copy_names(f), names);
        assert_memory_equal(f->bytes + f->toy.id, i ? "python3.dll" : "py3.dll\0\0\0\0", 12);
    }
}

/* Functions, data, gaps and forwarders to other libraries. */
static void other_exports_are_unchanged(void **state)
{
    struct copy_fixture *f = *state;

    copy_replace(f, "python311", LONGER);
    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    copy_make(f);
    assert_string_equal(copy_names(f), NAMES(LONGER, PTOY_ID, "python311-context-4711"));

    f->opts.needed_count = 0;
    copy_replace(f, "python3", LONGER);
    make_stable_abi(f, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, f->toy.forwarder + 7, 1, '.'); /* python3.1.PyList_New */
    assert_refused(f, EXTI_E_UNSUPPORTED, f->toy.forwarder, "which dot ends the library's name");
    make_stable_abi(f, (struct pe_toy_opts){0});
    assert_refused(f, EXTI_E_ARG, EXTI_NO_OFFSET, "there is no 'python3'");
    f->opts.needed_count = 0;
    copy_replace(f, "python3", "py.dll");
    make_stable_abi(f, (struct pe_toy_opts){0});
    memcpy(f->toy.b + f->toy.forwarder, "python3.#12", 12);
    copy_make(f);
    assert_string_equal(copy_names(f), "KERNEL32.dll KERNEL32.dll delay WS2_32.dll | python3.dll | "
                                       "#5 PyList_New=py.#12 #6 PyLong_Type=python311.PyLong_Type "
                                       "#7 PyModule_Create2=python311.PyModule_Create2 ");
}

/* Two exports may share one string. */
static void shared_forwarders_are_renamed_once(void **state)
{
    static const char *const names[] = {"k3.dll", LONGER};
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        f->opts.needed_count = 0;
        copy_replace(f, "python311", names[i]);
        make_stable_abi(f, (struct pe_toy_opts){0});
        ptoy_put(t, t->functions + 8, 4, ptoy_rva(t, t->forwarder));
        copy_make(f);
        assert_non_null(
            strstr(copy_names(f), i ? "#7 PyModule_Create2=python311-context-4711.PyList_New"
                                    : "#7 PyModule_Create2=k3.PyList_New"));
    }
    /* If one string is the end of another, neither can be overwritten. */
    f->opts.needed_count = 0;
    copy_replace(f, "python311", "k3.dll");
    copy_replace(f, "n311", "q.dll");
    make_stable_abi(f, (struct pe_toy_opts){0});
    ptoy_put(t, t->functions + 8, 4, ptoy_rva(t, t->forwarder) + 5);
    copy_make(f);
    assert_string_equal(copy_names(f), "KERNEL32.dll KERNEL32.dll delay WS2_32.dll | python3.dll | "
                                       "#5 PyList_New=k3.PyList_New #6 PyLong_Type=k3.PyLong_Type "
                                       "#7 PyModule_Create2=q.PyList_New ");
    assert_memory_equal(f->bytes + t->forwarder, t->b + t->forwarder, 21);
}

/* An export past a section's end would become a forwarder. */
static void an_export_inside_the_moved_directory_is_refused(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", LONGER);
    pe_toy_make(t, (struct pe_toy_opts){.narrow = true});
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS);
    ptoy_put(t, t->functions + 12, 4, t->rva[PTOY_RDATA] + t->virtual_size[PTOY_RDATA] + 16);
    assert_refused(f, EXTI_E_UNSUPPORTED, t->exports, "export #8 lies at 0x");
}

static void every_allocation_of_a_move_may_fail(void **state)
{
    struct copy_fixture *f = *state;

    copy_replace(f, "python311", LONGER);
    f->opts.id = LONGER;
    make_stable_abi(f, (struct pe_toy_opts){.full = true, .checksum = true});
    for (long n = 0;; n++) {
        int rc;

        copy_reset(f);
        exti__mem_fail_after(n);
        rc = plan_of(f, exti__span(f->toy.b, f->toy.n), &f->plan);
        exti__mem_fail_after(-1);
        if (!rc)
            break;
        assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
        assert_true(n < 200);
    }
    copy_apply(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        copy_test(short_forwarders_are_set_in_place),
        copy_test(long_forwarders_move_with_their_directory),
        copy_test(the_exported_name_moves_with_its_directory),
        copy_test(other_exports_are_unchanged),
        copy_test(shared_forwarders_are_renamed_once),
        copy_test(an_export_inside_the_moved_directory_is_refused),
        copy_test(every_allocation_of_a_move_may_fail),
    };

    return cmocka_run_group_tests_name("pe/pe_forward", tests, NULL, NULL);
}
