#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "loader/image/formats.h"

/* Counts findings and adds the file's name on their way to the caller. */
struct counter {
    exti_report_fn report;
    void *user;
    const char *file;
    size_t count;
};

static int count_finding(void *user, const struct exti_error *finding)
{
    struct counter *c = user;
    struct exti_error named = *finding;

    c->count++;
    exti__error_file(&named, c->file);
    return c->report ? c->report(c->user, &named) : 0;
}

static int verify_mapped(struct exti_span copy, struct exti_span original, struct counter *c,
                         struct exti_error *err)
{
    const struct exti_format_ops *ops, *copy_ops;
    struct exti_error finding;
    int rc = exti__format_of(original, &ops, err);

    if (rc)
        return rc;
    if (exti__format_of(copy, &copy_ops, &finding) || copy_ops != ops) {
        exti__fail(&finding, EXTI_E_CHECK, 0, "is not %s, as the original is",
                   exti__format_name(ops->format));
        count_finding(c, &finding);
        return 0;
    }
    return ops->check(original, copy, NULL, NULL, count_finding, c, err);
}

/* dyld of macOS 13 to 15, validSemanticsInstallName: in files for SDK 13 and later, an install
 * name relative to @loader_path or @executable_path must match the end of the file's path. */
#define SDK_13 0x000d0000u

static void check_install_name(const struct exti_image *im, const char *path, struct counter *c)
{
    static const char *const relative[] = {"@loader_path/", "@executable_path/"};
    const char *id = im->info.id, *tail = NULL;
    struct exti_error finding;
    size_t n = strlen(path), tail_len;

    for (size_t i = 0; id && i < sizeof relative / sizeof *relative; i++)
        if (strncmp(id, relative[i], strlen(relative[i])) == 0)
            tail = id + strlen(relative[i]) - 1;
    if (!tail || im->info.sdk < SDK_13)
        return;
    tail_len = strlen(tail);
    if (tail_len <= n && strcmp(path + n - tail_len, tail) == 0)
        return;
    exti__fail(&finding, EXTI_E_CHECK, EXTI_NO_OFFSET,
               "dyld validSemanticsInstallName (SDK 13.0 and later): the install name %s does not "
               "match the end of the file's path",
               id);
    count_finding(c, &finding);
}

/* Checks the rules about the file's path, which the format's own checks do not know. */
static int check_place(const char *copy, struct counter *c, struct exti_error *err)
{
    struct exti_image *im;
    char *path;
    int rc = exti_inspect(copy, &im, err);

    if (rc)
        return rc;
    rc = exti__fs_realpath(copy, &path, err);
    if (!rc && im->format == EXTI_FORMAT_MACHO) {
        check_install_name(im, path, c);
        for (size_t i = 0; i < im->info.slice_count; i++)
            check_install_name(&im->slices[i], path, c);
    }
    if (!rc)
        exti__free(path);
    exti_image_free(im);
    return rc;
}

int exti_verify(const char *copy, const char *original, exti_report_fn report, void *user,
                size_t *findings, struct exti_error *err)
{
    struct counter c = {report, user, copy, 0};
    struct exti_mapping a = {0}, b = {0};
    int rc;

    if (!copy || !original || !*copy || !*original)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "copy or original is empty");
    rc = exti__fs_map(original, &a, NULL, err);
    if (!rc)
        rc = exti__fs_map(copy, &b, NULL, err);
    if (!rc) {
        rc = verify_mapped(exti__span(b.p, b.n), exti__span(a.p, a.n), &c, err);
        if (rc)
            exti__error_file(err, original);
    }
    /* A copy with findings may not be readable. */
    if (!rc && !c.count)
        rc = check_place(copy, &c, err);
    exti__fs_unmap(&a);
    exti__fs_unmap(&b);
    if (!rc && findings)
        *findings = c.count;
    return rc;
}
