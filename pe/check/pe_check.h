/* The judge of rewritten copies.  It reads both files from scratch: headers, imports, exports and
 * the checksum are decoded here a second time, so that a fault of the rewriter's decoders is not
 * hidden by the same fault in the judge's. */
#ifndef PE_CHECK_PE_CHECK_H
#define PE_CHECK_PE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/format.h"
#include "pe/check/pe_check_state.h"

/* A rule about one file, whether it is a copy or not. */
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

/* Opens both; fails when `before` cannot be read or memory is out.  When `after` cannot be compared
 * with it, reports that and leaves *sound false.  Close in any case but failure. */
int exti__pe_check_open(struct pe_check *c, struct exti_span before, struct exti_span after,
                        bool *sound, struct exti_error *err);
void exti__pe_check_close(struct pe_check *c);
int exti__pe_check_rules(struct pe_check *c, struct exti_error *err);
int exti__pe_check_steps(struct pe_check *c, struct exti_error *err);

int exti__pe_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                   const struct exti_plan *plan, exti_report_fn report, void *user,
                   struct exti_error *err);

#endif
