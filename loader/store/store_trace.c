#include "loader/store/store_trace.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_owner.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/store/copy_names.h"
#include "loader/store/store_lock.h"

/* A manifest beside a file, in /tmp say, could be anyone's, and give as its source another file
 * than the one that was named. */
static int check_witness(const char *dir, struct exti_error *err)
{
    char *path = exti__path_join(dir, EXTI_MANIFEST_FILE);
    int rc = path ? exti__fs_check_file(path, err) : exti__fail_nomem(err);

    exti__free(path);
    return rc;
}

/* Whether the file has the name of a copy of the context in `dir`. */
static bool is_unrecorded_copy(const char *dir, const char *name, struct exti_manifest *other,
                               int *rc, struct exti_error *err)
{
    if (other->name[0])
        return strstr(name, other->name) != NULL;
    *rc = exti__store_locked_name(dir, other->name, err);
    return !*rc && other->name[0] && exti__copy_name_is_of(name, other->name);
}

/* The source of `name`, if that is a copy in the context directory `dir`; NULL if it is none, or
 * on failure (*rc).  A file with the context's name in its own is a copy too, which is not
 * recorded yet: that fails.  The context's name comes from the manifest, or from the lock file
 * of a one-shot directory, which has no manifest. *is_context: whether `dir` is a context
 * directory. */
static char *source_of_copy(struct exti_store *s, const char *dir, const char *name,
                            bool *is_context, int *rc, struct exti_error *err)
{
    struct exti_manifest other = {0};
    const struct exti_entry *e = NULL;
    struct exti_error why = {0};
    char *source = NULL;
    int read = 0;

    pthread_mutex_lock(&s->lock);
    *is_context = strcmp(dir, s->dir) == 0;
    if (*is_context)
        e = exti__manifest_find_copy(&s->manifest, name);
    /* Another process may have recorded it. */
    if (!e)
        read = exti__manifest_read(dir, &other, &why);
    if (!e && !read)
        e = exti__manifest_find_copy(&other, name);
    /* A manifest that nobody may read is another's, who has no copies for us. */
    if (exti__is_unseen(read, &why) && !exti__is_forbidden(read, &why)) {
        *rc = read;
        if (err)
            *err = why;
    } else if (e && other.name[0] && !s->trust_dir) {
        *rc = check_witness(dir, err);
    }
    if (e && !*rc) {
        source = exti__strdup(e->source);
        *rc = source ? 0 : exti__fail_nomem(err);
    } else if (!*rc && is_unrecorded_copy(dir, name, &other, rc, err)) {
        *rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                         "is a copy that the context '%s' has not recorded yet; name the original",
                         other.name);
    }
    *is_context = *is_context || e || other.name[0];
    pthread_mutex_unlock(&s->lock);
    exti__manifest_clear(&other);
    return source;
}

static void tracer_clear(struct exti_tracer *t)
{
    exti__free(t->given);
    exti__free(t->real);
    *t = (struct exti_tracer){0};
}

/* `path` up to and with its last slash, which it must have. */
static char *folder_of(const char *path)
{
    char *folder = exti__strdup(path);

    if (folder)
        exti__path_last_slash(folder)[1] = 0;
    return folder;
}

/* Remembers the folder of a file that is in no context directory; forgets all if memory is out. */
static void tracer_set(struct exti_tracer *t, const char *path, const char *real)
{
    tracer_clear(t);
    if (!exti__path_last_slash(path) || !exti__fs_is_named_itself(path))
        return;
    t->given = folder_of(path);
    t->real = folder_of(real);
    if (!t->given || !t->real)
        tracer_clear(t);
}

static bool tracer_knows(const struct exti_tracer *t, const char *path)
{
    const char *slash = exti__path_last_slash(path);
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;

    return n && t->given && strncmp(path, t->given, n) == 0 && !t->given[n] &&
           exti__fs_is_named_itself(path);
}

int exti__store_trace_next(struct exti_store *s, struct exti_tracer *t, const char *path,
                           char **out, struct exti_error *err)
{
    char *real, *slash, *source, was;
    bool is_context;
    int rc;

    if (tracer_knows(t, path)) {
        *out = exti__path_join(t->real, exti__path_last_slash(path) + 1);
        return *out ? 0 : exti__fail_nomem(err);
    }
    rc = exti__fs_realpath(path, &real, err);
    if (rc)
        return rc;
    slash = exti__path_last_slash(real);
    was = *slash;
    *slash = 0;
    source = source_of_copy(s, slash == real ? "/" : real, slash + 1, &is_context, &rc, err);
    *slash = was;
    if (!is_context)
        tracer_set(t, path, real);
    if (rc || source)
        exti__free(real);
    if (rc)
        return rc;
    *out = source ? source : real;
    return 0;
}

void exti__tracer_end(struct exti_tracer *t)
{
    tracer_clear(t);
}

int exti__store_trace(struct exti_store *s, const char *path, char **out, struct exti_error *err)
{
    struct exti_tracer t = {0};
    int rc = exti__store_trace_next(s, &t, path, out, err);

    exti__tracer_end(&t);
    return rc;
}

void exti__error_name_original(const char *original, const char *real, struct exti_error *err)
{
    if (err && strcmp(err->file, real) == 0)
        err->file[0] = 0;
    exti__error_file(err, original);
}
