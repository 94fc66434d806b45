/* How the rules and steps of the self-check report. */
#include "pe/check/pe_check_state.h"

#include <stdarg.h>

void exti__pe_finding(struct pe_check *c, uint64_t at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    exti__findings_report(&c->findings, at, fmt, ap);
    va_end(ap);
}

void exti__pe_broken(struct pe_check *c, uint64_t at, const char *subject, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    exti__findings_broken(&c->findings, at, subject, fmt, ap);
    va_end(ap);
}
