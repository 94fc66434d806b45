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
#include "base/os/fs_owner.h"
#include "base/path.h"
#include "loader/image/inspect.h"
#include "loader/rewrite/rewrite.h"
#include "loader/store/copy_identity.h"
#include "loader/store/edits.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_state.h"
#include "loader/store/verify_needs.h"
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
                                   .state = exti__entry_state(d->copies[i], &d->manifest, e),
                                   .edits = e->edits,
                                   .shared_size = exti__parts_size(&e->left_out) -
                                                  exti__parts_size(&e->unloaded)};
    return exti__opts_give(out, &info, sizeof info);
}

int exti_dir_trust(const char *dir, struct exti_error *err)
{
    static const char *const files[] = {EXTI_MANIFEST_FILE, EXTI_LOCK_FILE};
    struct exti_error e = {0};
    int rc;

    if (!dir || !*dir)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "dir is NULL or empty");
    rc = exti__fs_check_folder(dir, err);
    for (size_t i = 0; i < sizeof files / sizeof *files && !rc; i++) {
        char *path = exti__path_join(dir, files[i]);

        rc = path ? exti__fs_check_file(path, &e) : exti__fail_nomem(&e);
        exti__free(path);
        if (rc == EXTI_E_IO && e.os_error == ENOENT) /* begun, or never used by more than one */
            rc = 0;
        else if (rc && err)
            *err = e;
    }
    return rc;
}

/* ---- verify ---- */

struct dir_check {
    const struct exti_dir *dir;
    struct exti_private_symbols renames;
    exti_report_fn report;
    void *user;
    bool trusted; /* nobody else can change the directory */
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

/* Makes a copy like the entry's again, in memory. */
static int make_again(const struct exti_entry *e, const struct exti_image *im,
                      const struct exti_edits *edits, struct exti_rewritten *out,
                      struct exti_error *err)
{
    enum exti_lean lean = e->left_out.count ? EXTI_LEAN : EXTI_FULL;
    int rc = exti__rewrite_image(e->source, im, NULL, &edits->opts, lean, out, err);

    while (!rc && lean > EXTI_LEAN_WITH_DATA && !exti__parts_same(&out->left_out, &e->left_out)) {
        exti__rewritten_free(out);
        rc = exti__rewrite_image(e->source, im, NULL, &edits->opts, --lean, out, err);
    }
    return rc;
}

/* Compares the copy with one made again. */
static int compare_copy(struct dir_check *c, size_t i, const struct exti_image *im,
                        const struct exti_edits *edits, struct exti_error *err)
{
    const char *copy = c->dir->copies[i];
    struct exti_rewritten right;
    uint64_t differs = EXTI_NO_OFFSET;
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    int rc = make_again(e, im, edits, &right, err);

    if (rc)
        return rc;
    if (!exti__parts_same(&right.left_out, &e->left_out) ||
        !exti__parts_same(&right.unloaded, &e->unloaded))
        report_fault(c, copy, EXTI_E_CHECK, EXTI_NO_OFFSET,
                     "is not to leave out what the manifest says; copy it again");
    else
        rc = exti__rewritten_compare(&right, copy, &differs, err);
    if (!rc && differs != EXTI_NO_OFFSET)
        report_fault(c, copy, EXTI_E_CHECK, differs,
                     "differs from what its source and the recorded edits make");
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

/* Compares the copy with what its source, which `im` describes, and the recorded edits make. */
static int check_edits(struct dir_check *c, size_t i, const struct exti_image *im,
                       struct exti_error *err)
{
    const struct exti_manifest *m = &c->dir->manifest;
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    struct exti_edits edits = {0};
    char *json;
    int rc = i ? exti__edits_copy(m, e, im, &c->renames, &edits, err)
               : exti__edits_api(m, e, im, &c->renames, &edits, err);

    if (!rc)
        rc = exti__edits_json(&edits, &json, err);
    if (!rc) {
        if (strcmp(json, e->edits) != 0)
            report_fault(
                c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET,
                "its recorded edits are not those that the manifest and the source ask for");
        else
            rc = compare_copy(c, i, im, &edits, err);
        exti__free(json);
    }
    exti__edits_free(&edits);
    return rc;
}

static const char *const states[] = {
    [EXTI_COPY_STALE] = "its source has changed since; copy it again",
    [EXTI_COPY_ORPHAN] = "its source is gone",
};

/* The source may have been replaced since the entry's state was looked up. */
static int check_copy(struct dir_check *c, size_t i, struct exti_error *err)
{
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    struct exti_image *im;
    int rc = exti__inspect(e->source, &im, err);

    if (rc)
        return rc;
    if (exti__fs_same_version(exti__inspected_id(im), &e->id))
        rc = check_edits(c, i, im, err);
    else
        report_fault(c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET, states[EXTI_COPY_STALE]);
    exti_image_free(im);
    return rc;
}

/* Whoever has damaged a copy may have recorded it as it is now; not so the disk. */
static void check_hash(struct dir_check *c, size_t i)
{
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    const char *copy = c->dir->copies[i];
    char hash[EXTI_HASH_MAX] = "";
    struct exti_file_id id;
    struct exti_error err = {0};

    if (exti__copy_hash_of(copy, &e->left_out, &id, hash, &err))
        report_fault(c, copy, err.code, err.offset, err.message);
    else if (strcmp(hash, e->copy_hash) != 0)
        report_fault(c, copy, EXTI_E_CHECK, EXTI_NO_OFFSET,
                     "its SHA-256 is not the recorded one; copy it again");
}

/* Nothing in a directory that others can change tells them from its owner, so its copies are not
 * singled out: see exti_dir_trust. */
static void check_owner(struct dir_check *c, size_t i)
{
    struct exti_error err = {0};

    if (c->trusted && exti__fs_check_file(c->dir->copies[i], &err) == EXTI_E_TRUST)
        report_fault(c, err.file, err.code, err.offset, err.message);
}

/* A source that can no longer be read or rewritten is a finding about its copy, not a failure of
 * the check. */
static void check_entry(struct dir_check *c, size_t i)
{
    const struct exti_entry *e = entry_of_copy(c->dir, i);
    enum exti_copy_state state = exti__entry_state(c->dir->copies[i], &c->dir->manifest, e);
    const size_t before = c->findings;
    struct exti_error err = {0};

    if (state == EXTI_COPY_STALE || state == EXTI_COPY_ORPHAN)
        report_fault(c, c->dir->copies[i], EXTI_E_CHECK, EXTI_NO_OFFSET, states[state]);
    else if (check_copy(c, i, &err))
        report_fault(c, err.file[0] ? err.file : c->dir->copies[i], err.code, err.offset,
                     err.message);
    if (*e->copy_hash && !c->stop &&
        (state == EXTI_COPY_STALE || state == EXTI_COPY_ORPHAN || c->findings == before))
        check_hash(c, i);
    if (!c->stop)
        check_owner(c, i);
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

static int verify_once(const char *dir, exti_report_fn report, void *user, size_t *findings,
                       struct exti_error *err)
{
    struct dir_check c = {.report = report, .user = user};
    struct exti_error e = {0};
    struct exti_dir *d;
    int rc = exti_dir_read(dir, &d, err);

    if (rc)
        return rc;
    c.dir = d;
    c.trusted = !exti_dir_trust(d->path, NULL);
    if (build_private_names(&c, &e))
        report_fault(&c, e.file, e.code, e.offset, e.message);
    else if (!exti__private_symbols_are(&c.renames, d->manifest.names))
        report_fault(&c, d->copies[0], EXTI_E_CHECK, EXTI_NO_OFFSET,
                     "its private names are another version's; copy it again");
    else
        for (size_t i = 0; i < exti_dir_count(d) && !c.stop; i++)
            check_entry(&c, i);
    if (!c.stop && exti__verify_set(&d->manifest, d->copies, report_finding, &c, &e))
        report_fault(&c, e.file, e.code, e.offset, e.message);
    if (!c.stop && exti__verify_needs(&d->manifest, d->copies, report_finding, &c, &e))
        report_fault(&c, e.file, e.code, e.offset, e.message);
    e.code = 0;
    if (!c.stop && exti__fs_list(d->path, check_unlisted, &c, &e) && e.code)
        report_fault(&c, e.file, e.code, e.offset, e.message);
    exti__private_symbols_free(&c.renames);
    exti_dir_free(d);
    *findings = c.findings;
    return 0;
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    (void)user;
    (void)finding;
    return 1;
}

/* Others may be copying, and then what is found may be true no more.  So nothing is told until it
 * is found while the directory is locked; a directory that is sound needs no lock.  Where that
 * cannot be had, as in a read-only directory, it is checked again without. */
int exti_dir_verify(const char *dir, exti_report_fn report, void *user, size_t *findings,
                    struct exti_error *err)
{
    char *path = NULL;
    struct exti_lock lock;
    bool locked;
    size_t found = 0;
    int rc = verify_once(dir, stop_at_once, NULL, &found, err);

    if (!rc && found) {
        path = exti__path_join(dir, EXTI_LOCK_FILE);
        if (!path)
            return exti__fail_nomem(err);
        locked = !exti__fs_lock(path, &lock, NULL);
        rc = verify_once(dir, report, user, &found, err);
        if (locked && lock.made)
            exti__store_remove_file(dir, EXTI_LOCK_FILE, NULL);
        if (locked)
            exti__fs_unlock(&lock);
        exti__free(path);
    }
    if (!rc && findings)
        *findings = found;
    return rc;
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
