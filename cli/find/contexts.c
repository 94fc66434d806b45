#include "cli/find/contexts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"

bool cli_is_context(const char *dir)
{
    char *manifest = cli_join(dir, CLI_MANIFEST);
    bool yes = cli_exists(manifest);

    free(manifest);
    return yes;
}

bool cli_is_lean(const char *copy, const char *dir)
{
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_dir *d = NULL;
    bool lean = false;

    if (!cli_is_context(dir) || !cli_worked(exti_dir_read(dir, &d, NULL)))
        return false;
    for (size_t i = 0; !lean && exti_dir_copy(d, i, &info) == 0; i++)
        lean = info.shared_size != 0 && strcmp(cli_base_name(info.copy), cli_base_name(copy)) == 0;
    exti_dir_free(d);
    return lean;
}

void cli_warn_untrusted(const char *dir)
{
    struct exti_error err;

    if (exti_dir_trust(dir, &err) != EXTI_E_TRUST)
        return;
    cli_fail(err.file, "warning: %s", err.message);
    cli_hint("'run', 'copy', 'copy-tree' and 'clean' refuse it without --trust-dir");
}

/* Orders "2" before "10". */
static int natural_order(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (!isdigit((unsigned char)*a) || !isdigit((unsigned char)*b)) {
            if (*a != *b)
                return (unsigned char)*a - (unsigned char)*b;
            a++;
            b++;
            continue;
        }
        a += strspn(a, "0");
        b += strspn(b, "0");
        size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
        if (n != m)
            return n < m ? -1 : 1;
        int order = strncmp(a, b, n);
        if (order != 0)
            return order;
        a += n;
        b += n;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int compare_natural(const void *a, const void *b)
{
    return natural_order(*(char *const *)a, *(char *const *)b);
}

struct list {
    const char *dir;
    char **items;
    size_t count;
};

static bool add_context(void *user, const char *name, enum cli_type type)
{
    (void)type;
    struct list *l = user;
    char *path = cli_join(l->dir, name);

    if (!cli_is_context(path)) {
        free(path);
        return true;
    }
    l->items = cli_resize(l->items, (l->count + 1) * sizeof *l->items);
    l->items[l->count++] = path;
    return true;
}

static int find_contexts(struct list *l)
{
    if (!cli_each_name(l->dir, add_context, l))
        return cli_fail(l->dir, "cannot read the directory: %s", strerror(errno));
    if (l->count > 0)
        qsort(l->items, l->count, sizeof *l->items, compare_natural);
    return CLI_OK;
}

int cli_each_context(const char *dir, int (*each)(void *user, const char *dir), void *user)
{
    struct list l = {.dir = dir};

    if (cli_is_context(dir))
        return each(user, dir);
    int status = find_contexts(&l);
    if (status == CLI_OK && l.count == 0) {
        status = cli_fail(
            dir,
            "is not a context directory: neither it nor a directory in it has a " CLI_MANIFEST);
        cli_hint("'extisolate copy FILE... CTXDIR' makes one");
    }
    for (size_t i = 0; i < l.count; i++) {
        int one = each(user, l.items[i]);
        if (one > status)
            status = one;
    }
    for (size_t i = 0; i < l.count; i++)
        free(l.items[i]);
    free(l.items);
    return status;
}

int cli_context_api(const char *dir, struct exti_dir **d, struct exti_copy_info *out,
                    struct exti_error *err)
{
    int rc = exti_dir_read(dir, d, err);

    cli_worked(rc);
    for (size_t i = 0; rc == 0 && i < exti_dir_count(*d); i++)
        if ((rc = exti_dir_copy(*d, i, out)) != 0 || out->is_api)
            break;
    return rc;
}
