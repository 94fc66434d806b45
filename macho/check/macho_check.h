/* The format's check operation, and its parts for tests. */
#ifndef MACHO_CHECK_MACHO_CHECK_H
#define MACHO_CHECK_MACHO_CHECK_H

#include "macho/check/macho_check_state.h"

/* struct exti_format_ops.check. */
int exti__macho_check(struct exti_span before, struct exti_span after,
                      const struct exti_request *req, const struct exti_plan *plan,
                      exti_report_fn report, void *user, struct exti_error *err);

/* A rule about one file, original or copy. */
struct macho_check_rule {
    const char *name;
    int (*run)(struct macho_check *c, const struct macho_file *f, struct exti_error *err);
};
extern const struct macho_check_rule exti__macho_rules[];
extern const size_t exti__macho_rule_count;

/* A comparison of the copy with the original. */
struct macho_check_step {
    const char *name;
    int (*run)(struct macho_check *c, struct exti_error *err);
};
extern const struct macho_check_step exti__macho_steps[];
extern const size_t exti__macho_step_count;

/* Opens both slices.  Fails if `before` cannot be read or memory is out.  If `after` is not sound,
 * reports that and sets *sound to false.  Close it unless this fails. */
int exti__macho_check_open(struct macho_check *c, struct exti_span before, struct exti_span after,
                           bool *sound, struct exti_error *err);
void exti__macho_check_close(struct macho_check *c);

#endif
