/* The public functions on context directories: list, verify, clean. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_map.h"
#include "base/path.h"
#include "loader/rewrite/rewrite.h"
#include "loader/store/edits.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_state.h"
#include "loader/store/verify_set.h"

struct exti_dir {
    char *path;
    struct exti_manifest manifest;
    char **copies; /* absolute path of copy i, the API's first */
};

int exti_dir_read(const char *dir, struct exti_dir **out, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_dir *d;
    size_t n;
    int rc;

    if (!dir || !*dir || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "dir is NULL or empty, or out is NULL");
    d = exti__calloc(1, sizeof *d);
    if (!d)
        return exti__fail_nomem(err);
    rc = exti__fs_realpath(dir, &d->path, err);
    if (!rc) {
        rc = exti__manifest_read(d->path, &d->manifest, &e);
        if (rc && err)
            *err = e;
        if (rc == EXTI_E_IO && (e.os_error == ENOENT || e.os_error == ENOTDIR)) {
            exti__fail_io(err, e.os_error, dir, "is not a context directory: it has no %s",
                          EXTI_MANIFEST_FILE);
        }
    }
    n = d->manifest.count + 1;
    if (!rc) {
        d->copies = exti__calloc(n, sizeof *d->copies);
        rc = d->copies ? 0 : exti__fail_nomem(err);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        d->copies[i] =
            exti__path_join(d->path, i ? d->manifest.entries[i - 1].copy : d->manifest.api.copy);
        rc = d->copies[i] ? 0 : exti__fail_nomem(err);
    }
    if (rc) {
        exti_dir_free(d);
        return rc;
    }
    *out = d;
    return 0;
}

void exti_dir_free(struct exti_dir *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->copies && i < d->manifest.count + 1; i++)
        exti__free(d->copies[i]);
    exti__free(d->copies);
    exti__manifest_clear(&d->manifest);
    exti__free(d->path);
    exti__free(d);
}

const char *exti_dir_name(const struct exti_dir *d)
{
    return d->manifest.name;
}

int exti_dir_renamed(const struct exti_dir *d)
{
    return d->manifest.renamed;
}

size_t exti_dir_count(const struct exti_dir *d)
{
    return d->manifest.count + 1;
}

static const struct exti_entry *entry_of_copy(const struct exti_dir *d, size_t i)
{
    return i ? &d->manifest.entries[i - 1] : &d->manifest.api;
}

int exti_dir_copy(const struct exti_dir *d, size_t i, struct exti_copy_info *out)
{
    struct exti_copy_info info;
    const struct exti_entry *e;

    if (!d || i >= exti_dir_count(d))
        return EXTI_E_ARG;
    e = entry_of_copy(d, i);
    info = (struct exti_copy_info){.source = e->source,
                                   .copy = d->copies[i],
                                   .build_id = e->build_id,
                                   .source_size = e->id.size,
                                   .source_mtime_ns = e->id.mtime_ns,
                                   .source_inode = e->id.inode,
                                   .is_api = i == 0,
                                   .state = exti__entry_state(d->path, &d->manifest, e),
                                   .edits = e->edits};
    return exti__opts_give(out, &info, sizeof info);
}

/* ---- verify ---- */

struct dir_check {
    const struct exti_dir *dir;
    struct exti_private_symbols renames;
    exti_report_fn report;
    void *user;
    size_t findings;
    int stop;
};

static void report_fault(struct dir_check *c, const char *file, int code, uint64_t offset,
                         const char *text)
{
    struct exti_error finding;

    exti__fail(&finding, code, offset, "%s", text);
    exti__error_file(&finding, file);
    c->findings++;
    if (c->report)
        c->stop = c->report(c->user, &finding);
}

static uint64_t first_difference(struct exti_mapping a, const uint8_t *b, size_t n)
{
    size_t i = 0, common = a.n < n ? a.n : n;

    while (i < common && a.p[i] == b[i])
        i++;
    return i;
}

/* Compares the copy with one made again in memory. */
static int compare_copy(struct dir_check *c, size_t i, const struct exti_edits *edits,
                        struct exti_error *err)
{
    const char *copy = c->dir->copies[i];
    struct exti_rewritten right;
    struct exti_mapping there;
    int rc = exti__rewrite_image(entry_of_copy(c->dir, i)->source, NULL, &edits->opts, &right, err);

    if (rc)
        return rc;
    rc = exti__fs_map(copy, &there, NULL, err);
    if (!rc) {
        if (there.n != right.size || memcmp(there.p, right.image.p, there.n) != 0)
            report_fault(c, copy, EXTI_E_CHECK, first_difference(there, right.image.p, right.size),
                         "differs from what its source and the recorded edits make");
        exti__fs_unmap(&there);
    }
    exti__rewritten_free(&right);
    return rc;
}

/* Each isolated need names a copy, which must be in the manifest. */
static void check_needs(struct dir_check *c, size_t i)
{
    const struct exti_entry *e = entry_of_copy(c->dir, i);

    for (size_t k = 0; k < e->need_count && !c->stop; k++) {
        const struct exti_need *n = &e->needs[k];
        const struct exti_entry *copy =
            n->isolated ? exti__manifest_find_copy(&c->dir->manifest, n->to) : NULL;
        char text[EXTI_FILE_NAME_MAX + 64];

        if (!n->isolated || (copy && strcmp(copy->source, n->file) == 0))
            continue;
        snprintf(text, sizeof text, "needs a copy of %.255s, which the context does not have",
                 exti__base_name(n->file));
        report_fault(c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET, text);
    }
}

static int check_copy(struct dir_check *c, size_t i, struct exti_error *err)
{
    const struct exti_manifest *m = &c->dir->manifest;
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    struct exti_edits edits = {0};
    struct exti_image *im;
    char *json;
    int rc = exti_inspect(e->source, &im, err);

    if (rc)
        return rc;
    rc = i ? exti__edits_copy(m, e, im, &c->renames, &edits, err)
           : exti__edits_api(m, e, im, &c->renames, &edits, err);
    if (!rc)
        rc = exti__edits_json(&edits, &json, err);
    if (!rc) {
        if (strcmp(json, e->edits) != 0)
            report_fault(
                c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET,
                "its recorded edits are not those that the manifest and the source ask for");
        else
            rc = compare_copy(c, i, &edits, err);
        exti__free(json);
    }
    exti__edits_free(&edits);
    exti_image_free(im);
    return rc;
}

/* A source that can no longer be read or rewritten is a finding about its copy, not a failure of
 * the check. */
static void check_entry(struct dir_check *c, size_t i)
{
    static const char *const states[] = {[EXTI_COPY_STALE] =
                                             "its source has changed since; copy it again",
                                         [EXTI_COPY_ORPHAN] = "its source is gone"};
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    enum exti_copy_state state = exti__entry_state(c->dir->path, &c->dir->manifest, e);
    struct exti_error err = {0};

    if (state == EXTI_COPY_STALE || state == EXTI_COPY_ORPHAN)
        report_fault(c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET, states[state]);
    else if (check_copy(c, i, &err))
        report_fault(c, err.file[0] ? err.file : c->dir->copies[i], err.code, err.offset,
                     err.message);
    check_needs(c, i);
}

/* A file that has a copy's name but no entry was made by a process that has not recorded it yet. */
static int check_unlisted(void *user, const char *name)
{
    struct dir_check *c = user;
    char *path;

    if (exti__manifest_find_copy(&c->dir->manifest, name) || exti__store_owns(name) ||
        exti__copy_name_is_of(name, c->dir->manifest.name))
        return 0;
    path = exti__path_join(c->dir->path, name);
    report_fault(c, path ? path : c->dir->path, EXTI_E_CHECK, EXTI_NO_OFFSET,
                 "is not a copy in the manifest; remove it, or move it elsewhere");
    exti__free(path);
    return c->stop;
}

static int report_finding(void *user, const struct exti_error *finding)
{
    struct dir_check *c = user;

    report_fault(c, finding->file, finding->code, finding->offset, finding->message);
    return c->stop;
}

/* Private names are computed from the API library's source, as when the copies were made. */
static int build_private_names(struct dir_check *c, struct exti_error *err)
{
    struct exti_image *im;
    int rc;

    if (!c->dir->manifest.renamed)
        return 0;
    rc = exti_inspect(c->dir->manifest.api.source, &im, err);
    if (rc)
        return rc;
    rc = exti__private_symbols_build(im, &c->renames, err);
    exti_image_free(im);
    return rc;
}

int exti_dir_verify(const char *dir, exti_report_fn report, void *user, size_t *findings,
                    struct exti_error *err)
{
    struct dir_check c = {.report = report, .user = user};
    struct exti_error e = {0};
    struct exti_dir *d;
    int rc = exti_dir_read(dir, &d, err);

    if (rc)
        return rc;
    c.dir = d;
    if (build_private_names(&c, &e))
        report_fault(&c, e.file, e.code, e.offset, e.message);
    else
        for (size_t i = 0; i < exti_dir_count(d) && !c.stop; i++)
            check_entry(&c, i);
    if (!c.stop && exti__verify_set(&d->manifest, d->copies, report_finding, &c, &e))
        report_fault(&c, e.file, e.code, e.offset, e.message);
    if (!c.stop)
        exti__fs_list(d->path, check_unlisted, &c, NULL);
    exti__private_symbols_free(&c.renames);
    exti_dir_free(d);
    if (findings)
        *findings = c.findings;
    return 0;
}

/* ---- clean ---- */

/* Reads the manifest again, now that the directory is locked: others may have added copies
 * since. */
static int clean_locked(const char *dir, struct exti_error *err)
{
    struct exti_manifest m;
    int rc = exti__manifest_read(dir, &m, err);

    if (rc)
        return rc;
    rc = exti__store_remove(dir, &m, true, err);
    exti__manifest_clear(&m);
    return rc;
}

int exti_dir_clean(const char *dir, struct exti_error *err)
{
    struct exti_dir *d;
    struct exti_lock lock;
    char *path;
    int rc = exti_dir_read(dir, &d, err);

    if (rc)
        return rc;
    path = exti__path_join(d->path, EXTI_LOCK_FILE);
    rc = path ? exti__fs_lock(path, &lock, err) : exti__fail_nomem(err);
    exti__free(path);
    if (!rc) {
        rc = clean_locked(d->path, err);
        if (rc)
            exti__fs_unlock(&lock);
        else
            exti__store_unlock_removed(d->path, &lock);
    }
    exti_dir_free(d);
    return rc;
}
