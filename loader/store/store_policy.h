/* What all copies of a directory depend on besides their sources: which libraries are copied, where
 * libraries are looked up, and quirks. */
#ifndef LOADER_STORE_STORE_POLICY_H
#define LOADER_STORE_STORE_POLICY_H

#include "loader/store/store_open.h"

/* EXTI_E_ARG unless the manifest can hold the rules' globs. */
int exti__store_check_rules(const struct exti_store_opts *o, struct exti_error *err);

/* EXTI_E_ARG when the caller chose other than what the directory was made with: others use it
 * too. */
int exti__store_check_policy(const struct exti_manifest_policy *p, const struct exti_store_opts *o,
                             struct exti_error *err);

/* Sets the manifest's policy if it has none yet, else checks it.  `api` is the API library. */
int exti__store_choose_policy(struct exti_manifest *m, const struct exti_image *api,
                              const struct exti_store_opts *o, struct exti_error *err);

/* Records what needs are looked up by now, and the quirks.  If either changed, every copy's
 * needs will be looked up again. */
int exti__store_record_search(struct exti_store *s, struct exti_error *err);

/* Whether needs are looked up by now as when that was recorded. */
int exti__store_is_same_search(const struct exti_store *s, bool *same, struct exti_error *err);

#endif
