/* The lock file, by which processes take turns; it also holds the context's name. */
#ifndef LOADER_STORE_STORE_LOCK_H
#define LOADER_STORE_STORE_LOCK_H

#include "base/os/fs_lock.h"
#include "loader/store/store.h"

/* EXTI_E_CHECK with os_error ENOENT when the directory is no more. */
int exti__store_lock(const struct exti_store *s, struct exti_lock *lock, struct exti_error *err);

/* The context's name as the lock file of `dir` tells it, into EXTI_NAME_MAX+1 bytes; "" when there
 * is no such file, or some other program's.  EXTI_E_NOMEM. */
int exti__store_locked_name(const char *dir, char *name, struct exti_error *err);

/* EXTI_E_CHECK with os_error ENOENT: the directory is no longer what was opened.  `why`
 * completes "has been". */
int exti__store_fail_gone(const struct exti_store *s, const char *why, struct exti_error *err);

#endif
