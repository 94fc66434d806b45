#include "loader/base/error.h"
#include "loader/base/format.h"
#include "loader/base/fs.h"
#include "loader/formats.h"

/* Counts findings on their way to the caller, with the file they are about. */
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
        exti__fail(&finding, EXTI_E_CHECK, 0, "is not %s, as the original is", ops->name);
        count_finding(c, &finding);
        return 0;
    }
    return ops->check(original, copy, NULL, NULL, count_finding, c, err);
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
    exti__fs_unmap(&a);
    exti__fs_unmap(&b);
    if (!rc && findings)
        *findings = c.count;
    return rc;
}
