/* The check operation. */
#ifndef ELF_CHECK_ELF_CHECK_H
#define ELF_CHECK_ELF_CHECK_H

#include "base/format.h"
#include "elf/check/elf_check_state.h"

/* Checks `after` on its own and against `before`; see struct exti_format_ops. */
int exti__elf_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                    const struct exti_plan *plan, exti_report_fn report, void *user,
                    struct exti_error *err);

/* The list of checks, in the order in which exti__elf_check runs them; tests run each by itself. */
struct elf_check_step {
    const char *name;
    int (*run)(struct elf_check *c, struct exti_error *err);
};
extern const struct elf_check_step exti__elf_checks[];
extern const size_t exti__elf_check_count;

/* Opens both files into `c`, where the caller set opts, plan, findings.report and findings.user.
 * Fails when `before` is not a sound shared object or memory runs out.  When `after` is not sound,
 * reports that and sets *sound to false.  Close `c` unless this fails. */
int exti__elf_check_open(struct elf_check *c, struct exti_span before, struct exti_span after,
                         bool *sound, struct exti_error *err);
void exti__elf_check_close(struct elf_check *c);

#endif
