#include "loader/store/store_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_owner.h"
#include "base/os/fs_read.h"
#include "base/path.h"
#include "loader/store/copy_names.h"

int exti__store_fail_gone(const struct exti_store *s, const char *why, struct exti_error *err)
{
    int rc =
        exti__fail(err, EXTI_E_CHECK, EXTI_NO_OFFSET, "%s has been %s; open it again", s->dir, why);

    if (err)
        err->os_error = ENOENT;
    return rc;
}

int exti__store_lock(const struct exti_store *s, struct exti_lock *lock, struct exti_error *err)
{
    struct exti_error e = {0};
    char *path = exti__path_join(s->dir, EXTI_LOCK_FILE);
    int rc = path ? exti__fs_lock(path, lock, &e) : exti__fail_nomem(&e);

    if (!rc && !s->trust_dir) {
        rc = exti__fs_check_file(path, &e);
        if (rc)
            exti__fs_unlock(lock);
    }
    exti__free(path);
    if (rc && e.os_error == ENOENT)
        return exti__store_fail_gone(s, "cleaned meanwhile", err);
    if (rc && err)
        *err = e;
    return rc;
}

/* The name is written once, so it outlives a manifest that a power loss has torn.  A line
 * without its end was cut short by a kill, before the directory got anything else. */
int exti__store_locked_name(const char *dir, char *name, struct exti_error *err)
{
    char *path = exti__path_join(dir, EXTI_LOCK_FILE), *text = NULL;
    struct exti_error e = {0};
    size_t n = 0;
    int rc = path ? exti__fs_read(path, EXTI_NAME_MAX + 1, &text, &n, &e) : exti__fail_nomem(&e);
    bool good = !rc && n > 1 && strlen(text) == n && text[n - 1] == '\n';

    if (good) {
        text[n - 1] = 0;
        good = !exti__context_name_check(text, NULL);
    }
    snprintf(name, EXTI_NAME_MAX + 1, "%s", good ? text : "");
    exti__free(text);
    exti__free(path);
    if (rc != EXTI_E_NOMEM)
        return 0;
    if (err)
        *err = e;
    return rc;
}
