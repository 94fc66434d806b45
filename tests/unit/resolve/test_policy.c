#include "loader/resolve/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "tests/support/exti_test.h"

static const enum exti_file_format formats[] = {EXTI_FORMAT_ELF, EXTI_FORMAT_MACHO, EXTI_FORMAT_PE};

static void assert_decides(const struct exti_policy *p, const char *soname, const char *path,
                           uint32_t flags, bool share, enum exti_why why)
{
    const struct exti_decision d = exti__policy_decide(p, soname, path, flags);

    if (d.share != share || d.why != why || !d.reason || !*d.reason ||
        (d.glob != NULL) != (why <= EXTI_WHY_BASE))
        fail_msg("%s, %s: share %d, why %d, \"%s\"", soname ? soname : "-", path, d.share, d.why,
                 d.reason ? d.reason : "");
}

static void the_base_set_is_shared(void **state)
{
    static const char *const names[] = {"libstdc++.so.6",      "libgcc_s.so.1",
                                        "libgomp.so.1",        "libgomp-a34b3233.so.1.0.0",
                                        "libcuda.so.1",        "libglib-2.0.so.0",
                                        "libX11.so.6",         "libjemalloc.so.2",
                                        "libcrypto.so.3",      "libasan.so.8",
                                        "libffi.so.8",         "libcairo-gobject.so.2",
                                        "libcairo.so.2",       "libxcb-shm.so.0",
                                        "libsqlite3.so.0",     "libmpi_mpifh.so.40",
                                        "libmpich.so.12",      "libsqlite3-6a1b2c3d.so.0.8.6",
                                        "libiomp5-0123abcd.so"};
    static const char *const fixed[] = {"libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6",
                                        "ld-linux-aarch64.so.1", "libpthread.so.0"};
    static const char *const others[] = {"libz.so.1",
                                         "libhdf5_serial.so.103",
                                         "libreadline.so.8",
                                         "libopenblas.so.0",
                                         "libtorch_cpu.so",
                                         "libcups.so.2",
                                         "libXft.so.2",
                                         "libXt.so.6",
                                         "libXpm.so.4",
                                         "libffi-8.so",
                                         "libfreetype-6a1b2c3d.so.6.1.0",
                                         "libmpfr.so.6",
                                         "libunwind.so.8",
                                         "libopencv_highgui.so.406"};
    const struct exti_policy p = {.format = EXTI_FORMAT_ELF},
                             sharing = {.share_by_default = true, .format = EXTI_FORMAT_ELF};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_decides(&p, names[i], "/lib/x", 0, true, EXTI_WHY_BASE);
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        assert_decides(&p, fixed[i], "/lib/x", 0, true, EXTI_WHY_FIXED);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_decides(&p, others[i], "/lib/x", 0, false, EXTI_WHY_DEFAULT);
        assert_decides(&sharing, others[i], "/lib/x", 0, true, EXTI_WHY_DEFAULT);
    }
    assert_decides(&p, NULL, "/lib/libgcc_s.so.1", 0, true, EXTI_WHY_BASE);
}

static void pe_has_a_base_set_of_its_own(void **state)
{
    static const char *const names[] = {
        "VCRUNTIME140_1.dll", "msvcp140-a4c2229bdc2a2a630acdc095b4d86008.dll",
        "MSVCR100.dll",       "libiomp5md.dll",
        "libgomp-1.dll",      "libstdc++-6.dll",
        "nvcuda.dll",         "cudart64_110.dll",
        "glib-2.0-0.dll",     "libglib-2.0-0.dll",
        "VCOMP140.DLL"};
    static const char *const fixed[] = {"ucrtbased.dll", "API-MS-WIN-crt-heap-l1-1-0.dll"};
    static const char *const others[] = {"libcrypto-3.dll", "libssl-1_1.dll", "sqlite3.dll",
                                         "libffi-8.dll",    "tcl86t.dll",     "zlib1.dll",
                                         "libopenblas.dll", "hdf5.dll",       "msvcrystal.dll"};
    const struct exti_rule rules[] = {
        {"SQLITE3.*", true}, {"C:/Lib[A-B]/*", true}, {"x[0-9].dll", true}};
    const struct exti_policy p = {.format = EXTI_FORMAT_PE},
                             ruled = {.rules = rules,
                                      .rule_count = ARRAY_SIZE(rules),
                                      .format = EXTI_FORMAT_PE};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_decides(&p, NULL, names[i], 0, true, EXTI_WHY_BASE);
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        assert_decides(&p, NULL, fixed[i], 0, true, EXTI_WHY_FIXED);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_decides(&p, NULL, others[i], 0, false, EXTI_WHY_DEFAULT);
    assert_decides(&p, NULL, "libcrypto.so.3", 0, false, EXTI_WHY_DEFAULT);
    /* Rules ignore case and the kind of slash. */
    assert_decides(&ruled, NULL, "/l/sqlite3.DLL", 0, true, EXTI_WHY_RULE);
    assert_decides(&ruled, NULL, "c:\\liba\\a.dll", 0, true, EXTI_WHY_RULE);
    assert_decides(&ruled, NULL, "c:\\libc\\a.dll", 0, false, EXTI_WHY_DEFAULT);
    assert_decides(&ruled, NULL, "X1.dll", 0, true, EXTI_WHY_RULE);
    assert_decides(&ruled, NULL, "x[.dll", 0, false, EXTI_WHY_DEFAULT);
}

static void flags_decide_if_no_name_does(void **state)
{
    const struct exti_policy p = {.format = EXTI_FORMAT_ELF};

    (void)state;
    assert_decides(&p, "libp.so", "/p", EXTI_IMAGE_NODELETE, true, EXTI_WHY_FLAGS);
    assert_decides(&p, "libp.so", "/p", EXTI_IMAGE_STATIC_TLS, true, EXTI_WHY_FLAGS);
    assert_decides(&p, "libp.so", "/p", EXTI_IMAGE_UNIQUE, false, EXTI_WHY_DEFAULT);
    assert_decides(&p, "libgomp.so.1", "/p", EXTI_IMAGE_STATIC_TLS, true, EXTI_WHY_BASE);
}

static void mach_o_has_a_base_set_of_its_own(void **state)
{
    static const char *const names[] = {"libgcc_s.1.1.dylib", "libc++.1.dylib", "libomp.dylib",
                                        "libcrypto.3.dylib", "libstdc++.6.dylib"};
    static const char *const others[] = {"libscipy_openblas64_.dylib", "libz.1.dylib",
                                         "libgfortran.5.dylib", "libgcc_s.so.1", "libc.so.6"};
    const struct exti_policy p = {.format = EXTI_FORMAT_MACHO};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_decides(&p, "/DLC/x", names[i], 0, true, EXTI_WHY_BASE);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_decides(&p, "/DLC/x", others[i], 0, false, EXTI_WHY_DEFAULT);
    assert_decides(&p, "/usr/lib/libz.1.dylib", "/usr/lib/libz.1.dylib", 0, true, EXTI_WHY_FIXED);
    assert_decides(&p, NULL, "/v/libobjc.A.dylib", 0, true, EXTI_WHY_FIXED);
    /* A library with thread-locals stays in memory, but each copy has its own. */
    assert_decides(&p, NULL, "/v/libx.dylib", EXTI_IMAGE_NODELETE, false, EXTI_WHY_DEFAULT);
    assert_decides(&p, NULL, "/v/libx.dylib", EXTI_IMAGE_CLASSES, true, EXTI_WHY_FLAGS);
}

static void the_last_rule_decides_except_for_the_c_library(void **state)
{
    static const struct exti_rule rules[] = {
        {"*", false}, {"libz*", true}, {"/opt/*", true}, {"libzstd.so.1", false}};
    const struct exti_policy p = {
        .rules = rules, .rule_count = ARRAY_SIZE(rules), .format = EXTI_FORMAT_ELF};

    (void)state;
    assert_decides(&p, "libc.so.6", "/lib/libc.so.6", 0, true, EXTI_WHY_FIXED);
    assert_decides(&p, "libstdc++.so.6", "/p", 0, false, EXTI_WHY_RULE);
    assert_decides(&p, "libz.so.1", "/p", 0, true, EXTI_WHY_RULE);
    assert_decides(&p, "libzstd.so.1", "/p", 0, false, EXTI_WHY_RULE);
    assert_decides(&p, "liba.so", "/opt/liba.so", 0, true, EXTI_WHY_RULE);
    assert_decides(&p, "liba.so", "/p", EXTI_IMAGE_NODELETE, false, EXTI_WHY_RULE);
    assert_string_equal(exti__policy_decide(&p, "libz.so.1", "/p", 0).glob, "libz*");
}

/* Asserts the decision on a library of which the program has its own. */
static void assert_captured(const struct exti_policy *p, const char *soname, uint32_t flags,
                            bool isolated)
{
    const struct exti_decision d = exti__policy_decide(p, soname, "/p", flags),
                               now = exti__policy_captured(d);

    if (isolated != (now.why == EXTI_WHY_CAPTURED) || (isolated && now.share) ||
        (!isolated && (now.why != d.why || now.share != d.share)))
        fail_msg("%s: share %d, why %d", soname, now.share, now.why);
}

static void what_the_program_has_of_its_own_is_isolated(void **state)
{
    static const char *const isolated[] = {"libcrypto.so.3", "libssl.so.3", "libglib-2.0.so.0",
                                           "libffi.so.8", "libX11.so.6"};
    /* Of the whole process, or one per process; or isolated anyway. */
    static const char *const others[] = {
        "libc.so.6",      "libm.so.6",        "libstdc++.so.6",  "libgcc_s.so.1", "libasan.so.8",
        "libatomic.so.1", "libjemalloc.so.2", "libgomp.so.1",    "libcuda.so.1",  "libmpi.so.40",
        "libjvm.so",      "libz.so.1",        "libiomp5-0123.so"};
    static const struct exti_rule rule = {"libssl*", true};
    const struct exti_policy p = {.format = EXTI_FORMAT_ELF},
                             sharing = {.share_by_default = true, .format = EXTI_FORMAT_ELF},
                             ruled = {.rules = &rule, .rule_count = 1, .format = EXTI_FORMAT_ELF};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(isolated); i++)
        assert_captured(&p, isolated[i], 0, true);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_captured(&p, others[i], 0, false);
    assert_captured(&p, "libp.so", EXTI_IMAGE_NODELETE, true);
    assert_captured(&p, "libp.so", EXTI_IMAGE_STATIC_TLS, false);
    assert_captured(&p, "libp.so", EXTI_IMAGE_STATIC_TLS | EXTI_IMAGE_NODELETE, false);
    assert_captured(&p, "libssl.so.3", EXTI_IMAGE_STATIC_TLS, false);
    assert_captured(&sharing, "libz.so.1", 0, true);
    assert_captured(&ruled, "libssl.so.3", 0, false);
    assert_captured(&ruled, "libcrypto.so.3", 0, true);
}

static void a_program_replaces_run_time_libraries_for_all(void **state)
{
    static const char *const runtime[] = {"libc.so.6",     "libpthread.so.0", "libstdc++.so.6",
                                          "libgcc_s.so.1", "libtsan.so.2",    "libtcmalloc.so.4"};
    static const char *const others[] = {"libcrypto.so.3", "libz.so.1", "libgomp.so.1",
                                         "libmpi.so.40"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runtime); i++)
        assert_true(exti__policy_is_runtime(EXTI_FORMAT_ELF, runtime[i], "/lib/x"));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(exti__policy_is_runtime(EXTI_FORMAT_ELF, others[i], "/lib/x"));
    assert_true(exti__policy_is_runtime(EXTI_FORMAT_ELF, NULL, "/lib/libc.so.6"));
}

static void what_a_process_has_one_of_is_single(void **state)
{
    static const char *const single[] = {"libc.so.6", "libgomp.so.1", "libcuda.so.1", "libjvm.so"};
    static const char *const others[] = {"libcrypto.so.3", "libsqlite3.so.0", "libp.so"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(single); i++)
        assert_true(exti__policy_is_single(EXTI_FORMAT_ELF, single[i], "/lib/x"));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(exti__policy_is_single(EXTI_FORMAT_ELF, others[i], "/lib/x"));
}

/* Asserts that each entry has a reason, and that no earlier entry hides it. */
static void check_entries(enum exti_file_format format)
{
    const char *reason, *glob, *other;
    enum exti_base_kind kind;

    for (size_t i = 0; (glob = exti__policy_base(format, i, &reason, &kind)); i++) {
        assert_true(strlen(reason) > 20);
        for (size_t k = 0; k < i; k++) {
            other = exti__policy_base(format, k, &reason, &kind);
            if (exti__glob_matches(other, glob, false))
                fail_msg("%s comes behind %s", glob, other);
        }
    }
}

/* Copies whose record locks are their context's exclude each other as processes do. */
static void libraries_with_locks_are_isolated_where_copies_have_their_own(void **state)
{
    struct exti_policy p = {.format = EXTI_FORMAT_ELF};

    (void)state;
    assert_decides(&p, "libsqlite3.so.0", "/p", 0, true, EXTI_WHY_BASE);
    p.own_locks = true;
    assert_decides(&p, "libsqlite3.so.0", "/p", 0, false, EXTI_WHY_DEFAULT);
    assert_decides(&p, "libcrypto.so.3", "/p", 0, true, EXTI_WHY_BASE);
}

static void entries_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        check_entries(formats[i]);
}

/* Asserts that the table under the format's heading lists each entry. */
static void check_rows(const char *text, enum exti_file_format format)
{
    const char *reason, *glob, *row;
    char heading[32];
    enum exti_base_kind kind;

    snprintf(heading, sizeof heading, "\n### %s\n", exti__format_name(format));
    if (exti__policy_base(format, 0, &reason, &kind) && !(text = strstr(text, heading)))
        fail_msg("there is no heading for %s", exti__format_name(format));
    for (size_t i = 0; (glob = exti__policy_base(format, i, &reason, &kind)); i++) {
        char quoted[64];

        snprintf(quoted, sizeof quoted, "`%s`", glob);
        row = strstr(text, reason);
        if (!row || !strstr(row, quoted) || strstr(row, quoted) > strchr(row, '\n'))
            fail_msg("%s is not in the row of \"%s\"", glob, reason);
    }
}

static void entries_are_documented(void **state)
{
    char text[65536];
    FILE *f = fopen("docs/sharing.md", "r");

    (void)state;
    if (!f)
        skip_because("docs/sharing.md is not here");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        check_rows(text, formats[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_set_is_shared),
        cmocka_unit_test(pe_has_a_base_set_of_its_own),
        cmocka_unit_test(flags_decide_if_no_name_does),
        cmocka_unit_test(mach_o_has_a_base_set_of_its_own),
        cmocka_unit_test(the_last_rule_decides_except_for_the_c_library),
        cmocka_unit_test(what_the_program_has_of_its_own_is_isolated),
        cmocka_unit_test(a_program_replaces_run_time_libraries_for_all),
        cmocka_unit_test(what_a_process_has_one_of_is_single),
        cmocka_unit_test(libraries_with_locks_are_isolated_where_copies_have_their_own),
        cmocka_unit_test(entries_are_sound),
        cmocka_unit_test(entries_are_documented),
    };

    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
