/* The two ways in which initconfig.h configures CPython, for runtime/initconfig*.c only. */
#ifndef RUNTIME_INITCONFIG_OPS_H
#define RUNTIME_INITCONFIG_OPS_H

#include "runtime/initconfig.h"
#include "runtime/pyconfig.h"

struct pyrt_initconfig_ops {
    int (*init)(struct pyrt_initconfig *c, struct exti_error *err);
    int (*set[3])(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                  struct exti_error *err); /* by enum pyrt_setting_kind */
    int (*start)(struct pyrt_initconfig *c, struct exti_error *err);
    void (*clear)(struct pyrt_initconfig *c);
};

extern const struct pyrt_initconfig_ops pyrt_initconfig_layout; /* 3.9 to 3.13 */
extern const struct pyrt_initconfig_ops pyrt_initconfig_named;  /* from 3.14 on */

/* Lists that PyInitConfig cannot take as they are: sys.argv and sys.orig_argv. */
#define PYRT_LATE_LISTS 2

struct pyrt_initconfig {
    const struct pyrt_initconfig_ops *ops;
    const struct pyrt_api *py;
    const char *version;
    union pyrt_config config; /* of pyrt_initconfig_layout; the rest is the other's */
    void *named;              /* PyInitConfig */
    unsigned given;           /* bits of the options that the environment does not decide */
    struct pyrt_setting late[PYRT_LATE_LISTS];
    size_t late_count;
};

/* Both return EXTI_E_LOAD or EXTI_E_ARG, which the error gets. */
int pyrt_initconfig_failed(const struct pyrt_initconfig *c, const char *func, const char *message,
                           struct exti_error *err);
int pyrt_initconfig_unknown(const struct pyrt_initconfig *c, const char *name,
                            struct exti_error *err);

#endif
