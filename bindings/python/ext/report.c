#include "bindings/python/ext/report.h"

int pkg_report_begin(struct pkg_report *r)
{
    r->out = open_memstream(&r->text, &r->size);
    return r->out ? 0 : EXTI_E_NOMEM;
}

int pkg_report_add(void *report, const struct exti_error *finding)
{
    struct pkg_report *r = report;
    int written = finding->file[0] ? fprintf(r->out, "%s: %s\n", finding->file, finding->message)
                                   : fprintf(r->out, "%s\n", finding->message);

    return written < 0;
}

int pkg_report_end(struct pkg_report *r)
{
    int failed = ferror(r->out);

    return fclose(r->out) != 0 || failed ? EXTI_E_NOMEM : 0;
}
