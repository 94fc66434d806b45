/* The self-check of rewritten copies.
 *
 * pe/check compares a copy with its original: rules are what the loader demands of any file, steps
 * are what the copy must have in common with the original.  It decodes headers, imports, exports
 * and the checksum a second time (pe_view*.c), so that a fault of pe/read or pe/edit does not hide
 * itself.  Of pe/read it uses the constants, and exti__pe_open to refuse what no copy can be made
 * of; otherwise base/ alone.  exti__pe_check is its only entry; the rest of this header is for the
 * tests. */
#ifndef PE_CHECK_PE_CHECK_H
#define PE_CHECK_PE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/format.h"
#include "pe/check/pe_check_state.h"

/* A rule about one file, original or copy. */
struct pe_check_rule {
    const char *name;
    int (*run)(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
};
extern const struct pe_check_rule exti__pe_rules[];
extern const size_t exti__pe_rule_count;

/* What the copy must have in common with the original. */
struct pe_check_step {
    const char *name;
    int (*run)(struct pe_check *c, struct exti_error *err);
};
extern const struct pe_check_step exti__pe_steps[];
extern const size_t exti__pe_step_count;

/* Opens both files.  Fails if `before` cannot be read or memory is out.  If `after` cannot be
 * compared with it, reports that and leaves *sound false.  Close after success. */
int exti__pe_check_open(struct pe_check *c, struct exti_span before, struct exti_span after,
                        bool *sound, struct exti_error *err);
void exti__pe_check_close(struct pe_check *c);
int exti__pe_check_rules(struct pe_check *c, struct exti_error *err);
int exti__pe_check_steps(struct pe_check *c, struct exti_error *err);

/* The `check` of struct exti_format_ops. */
int exti__pe_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                   const struct exti_plan *plan, exti_report_fn report, void *user,
                   struct exti_error *err);

#endif
