#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "loader/store/edits.h"

/* Edits of Mach-O and PE files; tests/api covers ELF. */
static struct exti_manifest manifest(void)
{
    return (struct exti_manifest){
        .name = "ctx",
        .api = {.source = "/opt/lib/libpython3.13.dylib",
                .source_name = "/opt/Python.framework/Versions/3.13/Python",
                .copy = "libpython3.13.dylib.ctx"}};
}

static struct exti_image image(struct exti_image_needed *needed, size_t count, const char *id)
{
    return (struct exti_image){.format = EXTI_FORMAT_MACHO,
                               .info = {.format = "Mach-O", .needed_count = count, .id = id},
                               .needed = needed};
}

static const struct exti_private_symbols none;

static int of_copy(const struct exti_manifest *m, char *source, char *copy,
                   const struct exti_image *im, struct exti_edits *out, struct exti_error *err)
{
    const struct exti_entry e = {.source = source, .copy = copy, .takes_api = true};

    return exti__edits_copy(m, &e, im, &none, out, err);
}

static void a_bundle_gets_libpython_last(void **state)
{
    struct test *t = *state;
    struct exti_image_needed needed[] = {{"/usr/lib/libSystem.B.dylib", 0}};
    const struct exti_manifest m = manifest();
    const struct exti_image im = image(needed, 1, NULL);
    struct exti_edits e;
    char *json;

    assert_ok(of_copy(&m, "/site/a.so", "a.ctx-1.so", &im, &e, &t->err), &t->err);
    assert_int_equal(e.opts.needed_count, 1);
    assert_null(e.needed[0].from);
    assert_string_equal(e.needed[0].to, "@loader_path/libpython3.13.dylib.ctx");
    assert_int_equal(e.needed[0].where, EXTI_NEEDED_LAST);
    assert_string_equal(e.opts.bind_file, m.api.source);
    assert_string_equal(e.opts.bind_name, e.needed[0].to);
    assert_int_equal(strlen(e.opts.bind_short), 7);
    assert_string_equal(e.opts.origin, "/site");
    assert_null(e.opts.path_prepend);
    assert_int_equal(e.opts.flags,
                     EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE);
    assert_ok(exti__edits_json(&e, &json, &t->err), &t->err);
    assert_non_null(strstr(json, "\"bind_to\":\"@loader_path/libpython3.13.dylib.ctx\""));
    exti__free(json);
    exti__edits_free(&e);
}

static void every_name_of_libpython_is_replaced(void **state)
{
    struct test *t = *state;
    struct exti_image_needed needed[] = {
        {"/usr/lib/libSystem.B.dylib", 0},
        {"/Library/Frameworks/Python.framework/Versions/3.13/Python", 0},
        {"@rpath/libpython3.13.dylib", 0}};
    const struct exti_manifest m = manifest();
    const struct exti_image im = image(needed, 3, "@rpath/libfoo.1.dylib");
    struct exti_edits e;

    assert_ok(of_copy(&m, "/site/libfoo.1.dylib", "libfoo.ctx-1.dylib", &im, &e, &t->err), &t->err);
    assert_int_equal(e.opts.needed_count, 2);
    assert_string_equal(e.needed[0].from, needed[1].name);
    assert_string_equal(e.needed[0].to, "@loader_path/libpython3.13.dylib.ctx");
    assert_string_equal(e.needed[1].from, needed[2].name);
    assert_string_equal(e.needed[1].to, "@loader_path/libpython3.13.dylib.ctx");
    assert_int_equal(strlen(e.opts.id), 11);
    exti__edits_free(&e);
}

static void the_short_name_is_the_id_of_libpython(void **state)
{
    struct test *t = *state;
    const struct exti_manifest m = manifest();
    const struct exti_image im = image(NULL, 0, "/opt/lib/libpython3.13.dylib");
    struct exti_edits api, copy;

    assert_ok(exti__edits_api(&m, &m.api, &im, &none, &api, &t->err), &t->err);
    assert_ok(of_copy(&m, "/site/a.so", "a.ctx-1.so", &im, &copy, &t->err), &t->err);
    assert_string_equal(api.opts.id, copy.opts.bind_short);
    assert_null(api.opts.bind_file);
    assert_int_equal(api.opts.needed_count, 0);
    exti__edits_free(&api);
    exti__edits_free(&copy);
}

static void private_names_are_refused(void **state)
{
    struct test *t = *state;
    struct exti_manifest m = manifest();
    const struct exti_image im = image(NULL, 0, "/opt/lib/libpython3.13.dylib");
    struct exti_edits e;

    m.renamed = true;
    assert_exti(exti__edits_api(&m, &m.api, &im, &none, &e, &t->err), EXTI_E_UNSUPPORTED, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "private names are for ELF");
    assert_exti(of_copy(&m, "/site/a.so", "a.ctx-1.so", &im, &e, &t->err), EXTI_E_UNSUPPORTED,
                &t->err, EXTI_NO_OFFSET);
}

static void pe_imports_of_the_api_are_renamed(void **state)
{
    struct test *t = *state;
    struct exti_image_needed needed[] = {
        {"KERNEL32.dll", 0}, {"PYTHON311.dll", 0}, {"python3.DLL", 0}, {"VCRUNTIME140.dll", 0}};
    struct exti_manifest m = manifest();
    struct exti_image im = image(needed, 4, "a.pyd");
    struct exti_edits e;
    char *json;

    m.api.source = "/opt/python311.dll";
    m.api.source_name = "python311.dll";
    m.api.copy = "pk3x9q2m4.dll";
    m.target.format = EXTI_FORMAT_PE;
    im.format = EXTI_FORMAT_PE;
    assert_ok(of_copy(&m, "/site/a.pyd", "a.ctx-1.pyd", &im, &e, &t->err), &t->err);
    assert_int_equal(e.opts.needed_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(e.needed[i].from, needed[i + 1].name);
        assert_string_equal(e.needed[i].to, "pk3x9q2m4.dll");
    }
    assert_string_equal(e.opts.bind_file, m.api.source);
    assert_string_equal(e.opts.bind_name, m.api.copy);
    assert_null(e.opts.id);
    assert_ok(exti__edits_json(&e, &json, &t->err), &t->err);
    assert_null(strstr(json, "\"id\""));
    exti__free(json);
    exti__edits_free(&e);
    assert_ok(exti__edits_api(&m, &m.api, &im, &none, &e, &t->err), &t->err);
    assert_string_equal(e.opts.id, "pk3x9q2m4.dll");
    exti__edits_free(&e);

    im.info.needed_count = 1;
    assert_ok(of_copy(&m, "/site/b.dll", "b.ctx-1.dll", &im, &e, &t->err), &t->err);
    assert_int_equal(e.opts.needed_count, 0);
    /* With it, a late import that no directory lists is refused. */
    assert_string_equal(e.opts.bind_file, m.api.source);
    exti__edits_free(&e);
    im.info.unfit = "is packed";
    assert_exti(of_copy(&m, "/site/b.dll", "b.ctx-1.dll", &im, &e, &t->err), EXTI_E_UNSUPPORTED,
                &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "is packed");
    im.info.unfit = NULL;
    m.renamed = true;
    assert_exti(of_copy(&m, "/site/b.dll", "b.ctx-1.dll", &im, &e, &t->err), EXTI_E_UNSUPPORTED,
                &t->err, EXTI_NO_OFFSET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_bundle_gets_libpython_last),
        exti_test(every_name_of_libpython_is_replaced),
        exti_test(the_short_name_is_the_id_of_libpython),
        exti_test(private_names_are_refused),
        exti_test(pe_imports_of_the_api_are_renamed),
    };

    return cmocka_run_group_tests_name("edits", tests, NULL, NULL);
}
