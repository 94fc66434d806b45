/* Opening, creating and removing a context directory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/process/dl.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store_priv.h"

#define ATTEMPTS 100

/* ---- the folder ---- */

static int make_folder(struct exti_store *s, const char *dir, struct exti_error *err)
{
    int rc;

    if (!dir) {
        s->one_shot = true;
        return exti__fs_mkdtemp(&s->dir, err);
    }
    if (!*dir)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context directory's name is empty");
    rc = exti__fs_mkdir(dir, &s->made_folder, err);
    return rc ? rc : exti__fs_realpath(dir, &s->dir, err);
}

/* Another process may give up its attempt at the same folder, and remove it, before we have locked it. */
static int make_and_lock(struct exti_store *s, const char *dir, struct exti_lock *lock,
                         struct exti_error *err)
{
    struct exti_error e;
    bool removed;
    int rc = EXTI_E_IO;

    for (int tries = 0; rc && tries < ATTEMPTS; tries++) {
        e = (struct exti_error){0};
        exti__free(s->dir);
        s->dir = NULL;
        rc = make_folder(s, dir, &e);
        if (!rc)
            rc = exti__store_lock(s, lock, &e);
        if (e.os_error != ENOENT)
            break;
    }
    if (rc && s->dir && (s->made_folder || s->one_shot))
        exti__fs_rmdir(s->dir, &removed, NULL);
    if (rc && err)
        *err = e;
    return rc;
}

bool exti__store_owns(const char *name)
{
    return strcmp(name, EXTI_MANIFEST_FILE) == 0 || strcmp(name, EXTI_LOCK_FILE) == 0 ||
           exti__fs_is_temporary(name);
}

struct foreign {
    const char *context; /* whose copies are not; "" if none */
    size_t count;
};

static int count_foreign(void *user, const char *name)
{
    struct foreign *f = user;

    f->count += !exti__store_owns(name) && !(*f->context && strstr(name, f->context));
    return 0;
}

/* It is written once, so it outlives a manifest that a power loss has torn.  Without its line's end a kill
 * has cut it short, before there was anything else. */
bool exti__store_locked_name(const char *dir, char *name)
{
    char *path = exti__path_join(dir, EXTI_LOCK_FILE), *text = NULL;
    size_t n = 0;
    bool good = path && !exti__fs_read(path, EXTI_NAME_MAX + 1, &text, &n, NULL) && n > 1 &&
                strlen(text) == n && text[n - 1] == '\n';

    if (good) {
        text[n - 1] = 0;
        good = !exti__context_name_check(text, NULL);
    }
    if (good)
        memcpy(name, text, n);
    exti__free(text);
    exti__free(path);
    return good;
}

/* Begins a context in a folder that has nothing of anyone else's, or goes on with one that was begun:
 * whose name, from the lock file, is in s->manifest.  Other programs have files called .lock too. */
static int start_manifest(struct exti_store *s, const char *name, struct exti_error *err)
{
    struct foreign foreign = {s->manifest.name, 0};
    int rc = exti__fs_list(s->dir, count_foreign, &foreign, err);

    if (rc)
        return rc;
    if (foreign.count)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "has other files in it and no " EXTI_MANIFEST_FILE
                          "; name a new or empty folder");
    if (s->manifest.name[0])
        return 0;
    s->created = true;
    if (name) {
        memcpy(s->manifest.name, name, strlen(name) + 1);
        return 0;
    }
    return exti__context_name_make(s->manifest.name, err);
}

/* What a power loss leaves of a file that was being written: nothing, or zeros. */
static bool is_torn(const struct exti_store *s)
{
    char *path = exti__path_join(s->dir, EXTI_MANIFEST_FILE), *text = NULL;
    size_t n = 0;
    bool torn = path && !exti__fs_read(path, SIZE_MAX / 2, &text, &n, NULL) && !text[0];

    exti__free(text);
    exti__free(path);
    return torn;
}

static int read_manifest(struct exti_store *s, const char *name, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = exti__manifest_read(s->dir, &s->manifest, &e);
    bool missing = rc == EXTI_E_IO && e.os_error == ENOENT;
    bool named =
        (missing || rc == EXTI_E_FORMAT) && exti__store_locked_name(s->dir, s->manifest.name);

    if (missing || (rc == EXTI_E_FORMAT && !named && is_torn(s)))
        rc = start_manifest(s, name, err);
    else if (named)
        rc = 0;
    else if (rc && err)
        *err = e;
    if (!rc && name && strcmp(name, s->manifest.name) != 0)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "is the context '%s' already, not '%s'; leave the name out or use "
                          "another directory",
                          s->manifest.name, name);
    return rc;
}

/* ---- the API library ---- */

static int choose_api(struct exti_store *s, const char *wanted, char **source,
                      struct exti_error *err)
{
    int rc;

    if (!wanted && !s->manifest.api.source)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "%s",
                          s->created ? "a new context directory needs an API library to copy"
                                     : "its " EXTI_MANIFEST_FILE " is missing or damaged; name the "
                                       "API library, and all will be made again");
    rc = exti__fs_realpath(wanted ? wanted : s->manifest.api.source, source, err);
    if (rc)
        return rc;
    if (s->manifest.api.source && strcmp(*source, s->manifest.api.source) != 0) {
        rc = exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                        "holds copies for %s, not for %s; use another directory",
                        s->manifest.api.source, *source);
        exti__free(*source);
    }
    return rc;
}

/* Needs no memory: where that was what failed, nothing is left behind.  `dir` is a real path. */
static int remove_file(const char *dir, const char *name, struct exti_error *err)
{
    char path[EXTI_PATH_MAX + EXTI_FILE_NAME_MAX + 2];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return exti__fs_remove(path, err);
}

static void discard_file(const char *dir, const char *name)
{
    char *path = exti__path_join(dir, name);

    if (path)
        exti__fs_discard(path);
    exti__free(path);
}

/* Makes the API copy anew.  A second one gets another name: processes that have the first one loaded
 * keep it, and a copy that refers to it is recognised as stale. */
static int make_api(struct exti_store *s, const char *source, const struct exti_file_id *id,
                    const struct exti_image *im, bool keep_generation, struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    struct exti_entry e = {.id = *id};
    struct exti_edits edits = {0};
    char name[EXTI_FILE_NAME_MAX + 1];
    int rc;

    if (!keep_generation)
        m->generation++;
    if (im->format == EXTI_FORMAT_PE)
        exti__copy_name_pe_api(source, m->name, m->generation, name);
    else
        exti__copy_name_api(source, m->name, m->generation, name);
    rc = exti__store_check_name(s, source, name, err);
    if (!rc)
        rc = exti__store_entry(s, source, name, im, source, true, &e, err);
    if (!rc)
        rc = exti__edits_api(m, &e, im, &s->renames, &edits, err);
    if (!rc)
        rc = exti__store_edits(&edits, &e, err);
    if (!rc)
        rc = exti__store_write(s, im, &edits, &e, err);
    if (!rc) {
        if (m->api.copy && strcmp(m->api.copy, name) != 0)
            discard_file(s->dir, m->api.copy);
        exti__entry_clear(&m->api);
        m->api = e;
        m->target = exti__target_of(im);
        s->dirty = true;
    } else {
        exti__entry_clear(&e);
    }
    exti__edits_free(&edits);
    return rc;
}

static bool same_rules(const struct exti_manifest_policy *p, const struct exti_store_opts *o)
{
    if (p->rule_count != o->rule_count)
        return false;
    for (size_t i = 0; i < o->rule_count; i++)
        if (strcmp(p->rules[i].glob, o->rules[i].glob) != 0 ||
            p->rules[i].share != (o->rules[i].share != 0))
            return false;
    return true;
}

/* What the directory's copies were made by is not to change under whoever else uses them. */
static int check_policy(const struct exti_manifest_policy *p, const struct exti_store_opts *o,
                        struct exti_error *err)
{
    if ((o->closure == EXTI_CLOSURE_DEFAULT || o->closure == p->closure) &&
        (!o->rule_count || same_rules(p, o)))
        return 0;
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                      "holds copies made by another choice of which libraries are shared; leave "
                      "that out or use another directory");
}

static int copy_rules(struct exti_manifest_policy *p, const struct exti_store_opts *o,
                      struct exti_error *err)
{
    p->rules = exti__calloc(o->rule_count + 1, sizeof *p->rules);
    if (!p->rules)
        return exti__fail_nomem(err);
    for (; p->rule_count < o->rule_count; p->rule_count++) {
        const struct exti_rule *r = &o->rules[p->rule_count];
        char *glob = exti__strdup(r->glob);

        if (!glob)
            return exti__fail_nomem(err);
        p->rules[p->rule_count] = (struct exti_rule){glob, r->share != 0};
    }
    return 0;
}

static int check_rules(const struct exti_store_opts *o, struct exti_error *err)
{
    for (size_t i = 0; i < o->rule_count; i++) {
        int rc = exti__store_check_utf8(o->rules[i].glob, "rule", NULL);

        if (rc == EXTI_E_UNSUPPORTED)
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                              "library name %zu to share or isolate is not UTF-8, which the "
                              "manifest cannot hold",
                              i + 1);
        if (rc)
            return exti__fail_nomem(err);
    }
    return 0;
}

/* `api` is the API library. */
static int choose_policy(struct exti_manifest *m, const struct exti_image *api,
                         const struct exti_store_opts *o, struct exti_error *err)
{
    const bool given = o->closure != EXTI_CLOSURE_DEFAULT || o->rule_count;
    const bool followed = exti__search_ops(api->format);

    if (m->policy.closure != EXTI_CLOSURE_DEFAULT)
        return check_policy(&m->policy, o, err);
    if (!followed && given && o->closure != EXTI_CLOSURE_NONE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is %s; which of the libraries needed are copied cannot be chosen for "
                          "that here: all are shared",
                          api->info.format);
    m->policy.closure = !followed                            ? EXTI_CLOSURE_NONE
                        : o->closure == EXTI_CLOSURE_DEFAULT ? EXTI_CLOSURE_ALL
                                                             : o->closure;
    return copy_rules(&m->policy, o, err);
}

/* The manifest holds UTF-8 only, and the folders of a search path may have any name.  At most 4 bytes
 * for each of `text`; the end is the caller's to write. */
static char *put_ascii(char *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c < 0x80)
            *out++ = *text;
        else
            out += snprintf(out, sizeof "\\xNN", "\\x%02x", c);
    }
    return out;
}

/* All that copies depend on besides their sources and the policy: what needs are looked up by, and
 * quirks. */
static int search_key(const struct exti_store *s, char **out, struct exti_error *err)
{
    const bool all_shared = s->manifest.policy.closure == EXTI_CLOSURE_NONE;
    char *search = NULL, *quirks = NULL;
    int rc = all_shared ? 0 : exti__store_search_key(s->manifest.target.format, &search, err);

    if (!rc)
        rc = exti__quirks_key(s->quirks, &quirks, err);
    if (!rc) {
        const size_t n = strlen(quirks) + 16;

        *out = exti__alloc(4 * (search ? strlen(search) : 0) + n);
        if (*out)
            snprintf(put_ascii(*out, search ? search : ""), n, "%s%s", *quirks ? " quirks " : "",
                     quirks);
        else
            rc = exti__fail_nomem(err);
    }
    exti__free(search);
    exti__free(quirks);
    return rc;
}

/* Copies are made again when that is not what it was. */
static int note_search(struct exti_store *s, struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    char *key;
    int rc = search_key(s, &key, err);

    if (rc)
        return rc;
    if (strcmp(m->search ? m->search : "", key) == 0) {
        exti__free(key);
        return 0;
    }
    m->resolution += m->api.source != NULL;
    exti__free(m->search);
    m->search = key;
    s->dirty = true;
    return 0;
}

/* Makes the API's copy unless it is right; `im` describes the source. */
static int update_api(struct exti_store *s, const char *source, const struct exti_image *im,
                      const struct exti_store_opts *opts, enum exti_copy_state state,
                      struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    struct exti_file_id id;
    bool same = m->api.source != NULL;
    int rc = exti__fs_id(source, &id, err);

    if (rc)
        return rc;
    if (!m->renamed && (opts->rename || exti__store_is_interposed(s, im))) {
        m->renamed = true;
        same = false;
    }
    if (m->renamed)
        rc = exti__private_symbols_build(im, &s->renames, err);
    if (!rc && m->policy.closure == EXTI_CLOSURE_DEFAULT) {
        m->target = exti__target_of(im);
        rc = choose_policy(m, im, opts, err);
        if (!rc)
            rc = note_search(s, err);
    }
    if (rc || (same && state == EXTI_COPY_FRESH))
        return rc;
    return make_api(s, source, &id, im, same && exti__same_version(&id, &m->api.id), err);
}

static int ensure_api(struct exti_store *s, const char *source, const struct exti_store_opts *opts,
                      struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    enum exti_copy_state state = EXTI_COPY_STALE;
    struct exti_image *im;
    int rc = 0;

    if (m->policy.closure != EXTI_CLOSURE_DEFAULT) {
        rc = check_policy(&m->policy, opts, err);
        if (rc)
            exti__error_file(err, s->dir);
        if (!rc)
            rc = note_search(s, err);
    }
    if (!rc && m->api.source)
        state = exti__entry_state(s->dir, m, &m->api);
    if (state == EXTI_COPY_FRESH &&
        (exti__store_may_be_torn(s, &m->api) || m->api.resolution != m->resolution))
        state = EXTI_COPY_MISSING;
    /* Where nothing will be loaded it does not matter what this process exports. */
    if (!rc && (state != EXTI_COPY_FRESH || !opts->copy_only || opts->rename || m->renamed)) {
        rc = exti__inspect(source, &im, err);
        if (rc)
            return rc;
        rc = update_api(s, source, im, opts, state, err);
        exti_image_free(im);
    }
    return rc ? rc : exti__store_ensure(s, source, false, err);
}

/* ---- open, close, remove ---- */

/* Undoes the creation of a directory that could not be completed; in one that is not ours, only the
 * lock file may be. */
static void abandon(struct exti_store *s, const struct exti_lock *lock)
{
    const bool own_folder = s->made_folder || s->one_shot;
    bool removed;

    if (s->created)
        exti__store_remove(s->dir, &s->manifest, own_folder, NULL);
    else if (lock->made)
        remove_file(s->dir, EXTI_LOCK_FILE, NULL);
    if (own_folder && !s->created)
        exti__fs_rmdir(s->dir, &removed, NULL);
}

static int sweep_one(void *user, const char *name)
{
    if (exti__fs_is_temporary(name))
        remove_file(user, name, NULL);
    return 0;
}

/* Temporary files are written under the lock alone, so what is there is a killed process's. */
static void sweep(const struct exti_store *s)
{
    exti__fs_list(s->dir, sweep_one, s->dir, NULL);
}

static int note_name(const struct exti_store *s, const struct exti_lock *lock,
                     struct exti_error *err)
{
    char line[EXTI_NAME_MAX + 2];

    snprintf(line, sizeof line, "%s\n", s->manifest.name);
    return exti__fs_lock_note(lock, line, err);
}

static int open_locked(struct exti_store *s, const struct exti_store_opts *opts,
                       const struct exti_lock *lock, struct exti_error *err)
{
    char *source = NULL;
    int rc = read_manifest(s, opts->name, err);

    if (!rc)
        rc = choose_api(s, opts->api_library, &source, err);
    if (rc)
        return rc;
    /* Before the first file, so that a directory whose making was cut short can be gone on with. */
    if (s->created)
        rc = note_name(s, lock, err);
    else
        sweep(s);
    if (!rc)
        rc = ensure_api(s, source, opts, err);
    if (rc)
        exti__error_file(err, source);
    else if (s->dirty && !s->one_shot)
        rc = exti__store_save(s, err);
    exti__free(source);
    return rc;
}

void exti__store_unlock_removed(const char *dir, struct exti_lock *lock)
{
    bool removed;

    exti__fs_unlock(lock);
    exti__fs_rmdir(dir, &removed, NULL);
}

static void free_store(struct exti_store *s)
{
    exti__store_drop_graph(s);
    exti__manifest_clear(&s->manifest);
    exti__private_symbols_free(&s->renames);
    exti__tree_free(&s->strings, exti__string_order, exti__free);
    exti__free(s->dir);
    pthread_mutex_destroy(&s->lock);
    *s = (struct exti_store){0};
}

int exti__store_open(struct exti_store *s, const struct exti_store_opts *opts,
                     struct exti_error *err)
{
    struct exti_lock lock;
    int rc;

    if (opts->name && (rc = exti__context_name_check(opts->name, err)))
        return rc;
    rc = check_rules(opts, err);
    if (rc)
        return rc;
    *s = (struct exti_store){.sync = opts->sync,
                             .drop_unused = opts->drop_unused,
                             .copy_only = opts->copy_only,
                             .quirks = opts->quirks,
                             .copy_name = opts->copy_name,
                             .user = opts->user};
    pthread_mutex_init(&s->lock, NULL);
    exti__fs_boot(s->boot, sizeof s->boot);
    rc = make_and_lock(s, opts->dir, &lock, err);
    if (!rc) {
        rc = open_locked(s, opts, &lock, err);
        /* Still locked: who comes next may begin a context here. */
        if (rc)
            abandon(s, &lock);
        if (rc && (s->made_folder || s->one_shot))
            exti__store_unlock_removed(s->dir, &lock);
        else
            exti__fs_unlock(&lock);
    }
    if (rc) {
        exti__error_file(err, s->dir);
        free_store(s);
    }
    return rc;
}

/* Others may have copied into it since, and not recorded that yet; or have cleaned it, and begun one of
 * theirs there. */
static int drop_if_unused(struct exti_store *s, struct exti_error *err)
{
    struct foreign files = {"", 0};
    struct exti_manifest now = {0};
    struct exti_lock lock;
    int rc;

    if (exti__store_lock(s, &lock, NULL))
        return 0;
    rc = exti__manifest_read(s->dir, &now, NULL);
    if (!rc && strcmp(now.name, s->manifest.name) == 0)
        rc = exti__fs_list(s->dir, count_foreign, &files, NULL);
    rc = !rc && files.count == 1 ? exti__store_remove(s->dir, &now, true, err) : 0;
    exti__manifest_clear(&now);
    exti__store_unlock_removed(s->dir, &lock);
    return rc;
}

/* On Windows what is loaded stays, and the next process to make a private directory removes it. */
static int remove_one_shot(const struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = exti__store_remove(s->dir, &s->manifest, true, &e);

    if (!rc || e.os_error == EBUSY)
        return 0;
    if (err)
        *err = e;
    return rc;
}

int exti__store_close(struct exti_store *s, struct exti_error *err)
{
    int rc;

    if (s->one_shot)
        rc = remove_one_shot(s, err);
    else if (s->drop_unused && s->made_folder && !s->manifest.count)
        rc = drop_if_unused(s, err);
    else
        rc = exti__store_flush(s, err);
    free_store(s);
    return rc;
}

struct removal {
    const char *dir, *context;
    int rc; /* of the first file that could not be removed */
    struct exti_error err;
};

/* One that is in use must not keep the others. */
static void remove_one(struct removal *r, const char *name)
{
    int rc = remove_file(r->dir, name, r->rc ? NULL : &r->err);

    if (!r->rc)
        r->rc = rc;
}

/* Temporary files of a killed process, and copies that one did not come to record. */
static int remove_leftover(void *user, const char *name)
{
    struct removal *r = user;

    if (exti__fs_is_temporary(name) || exti__copy_name_is_of(name, r->context))
        remove_one(r, name);
    return 0;
}

int exti__store_remove(const char *dir, const struct exti_manifest *m, bool folder,
                       struct exti_error *err)
{
    struct removal r = {.dir = dir, .context = m->name};
    struct exti_error e = {0};
    bool removed;
    int rc;

    if (m->api.copy)
        remove_one(&r, m->api.copy);
    for (size_t i = 0; i < m->count; i++)
        remove_one(&r, m->entries[i].copy);
    rc = r.rc ? r.rc : exti__fs_list(dir, remove_leftover, &r, &e);
    if (rc && !r.rc) {
        r.rc = rc;
        r.err = e;
    }
    /* Last, so that a clean-up that was cut short can be repeated. */
    if (!r.rc)
        r.rc = remove_file(dir, EXTI_MANIFEST_FILE, &r.err);
    if (!r.rc)
        r.rc = remove_file(dir, EXTI_LOCK_FILE, &r.err);
    if (!r.rc && folder)
        r.rc = exti__fs_rmdir(dir, &removed, &r.err);
    if (r.rc && r.err.os_error == ENOENT) /* the folder itself is gone */
        return 0;
    if (r.rc && err)
        *err = r.err;
    return r.rc;
}
