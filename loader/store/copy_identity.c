#include "loader/store/copy_identity.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_owner.h"
#include "base/os/fs_pieces.h"
#include "base/os/sha256.h"
#include "loader/resolve/absent.h"

static void write_digits(const uint8_t hash[EXTI_SHA256_SIZE], char out[EXTI_HASH_MAX])
{
    for (size_t i = 0; i < EXTI_SHA256_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

int exti__copy_hash(const uint8_t *p, size_t n, const struct exti_unread *left_out,
                    char out[EXTI_HASH_MAX], struct exti_error *err)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_sha256 h;
    int rc = exti__sha256_init(&h, err);

    if (rc)
        return rc;
    for (size_t i = 0; i <= left_out->count; i++) {
        const struct exti_range r = exti__parts_between(left_out, i, n);

        exti__sha256_add(&h, p + r.at, r.n);
    }
    rc = exti__sha256_end(&h, hash, err);
    exti__sha256_free(&h);
    if (!rc)
        write_digits(hash, out);
    return rc;
}

static int add_range(struct exti_sha256 *h, const struct exti_pieces *f, struct exti_range r,
                     uint8_t *piece, struct exti_error *err)
{
    int rc = 0;

    while (r.n && !rc) {
        const size_t n = r.n < EXTI_PIECE ? r.n : EXTI_PIECE;

        rc = exti__fs_pieces_read(f, r.at, piece, n, err);
        if (!rc)
            exti__sha256_add(h, piece, n);
        r.at += n;
        r.n -= n;
    }
    return rc;
}

static int hash_pieces(const struct exti_pieces *f, const struct exti_unread *left_out,
                       uint8_t *piece, char out[EXTI_HASH_MAX], struct exti_error *err)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_sha256 h;
    int rc = exti__sha256_init(&h, err);

    if (rc)
        return rc;
    for (size_t i = 0; i <= left_out->count && !rc; i++)
        rc = add_range(&h, f, exti__parts_between(left_out, i, (size_t)f->id.size), piece, err);
    if (!rc)
        rc = exti__fs_pieces_check(f, err);
    if (!rc)
        rc = exti__sha256_end(&h, hash, err);
    exti__sha256_free(&h);
    if (!rc)
        write_digits(hash, out);
    return rc;
}

/* Whether the file is long enough to leave that out. */
static bool has_parts(const struct exti_pieces *f, const struct exti_unread *left_out)
{
    const struct exti_range *part = left_out->part;
    const size_t n = left_out->count;

    return !n || part[n - 1].at + part[n - 1].n <= f->id.size;
}

int exti__copy_hash_of(const char *path, const struct exti_unread *left_out,
                       struct exti_file_id *id, char out[EXTI_HASH_MAX], struct exti_error *err)
{
    struct exti_pieces f;
    uint8_t *piece;
    int rc = exti__fs_pieces_open(path, &f, err);

    if (rc)
        return rc;
    piece = exti__alloc(EXTI_PIECE);
    if (!piece)
        rc = exti__fail_nomem(err);
    else if (!has_parts(&f, left_out))
        rc = exti__fail(err, EXTI_E_CHECK, f.id.size, "ends before what its manifest says it has");
    else
        rc = hash_pieces(&f, left_out, piece, out, err);
    if (!rc)
        *id = f.id;
    exti__free(piece);
    exti__fs_pieces_close(&f);
    return rc;
}

/* ctime too: a program can set the other times, but not that. */
bool exti__copy_same_id(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return exti__fs_same_id(a, b) && a->ctime_ns == b->ctime_ns;
}

bool exti__copy_hash_file(const char *path, const struct exti_entry *e,
                          const struct exti_file_id *id, char out[EXTI_HASH_MAX])
{
    struct exti_file_id opened, after;
    char hash[EXTI_HASH_MAX];
    bool trusted;

    if (exti__copy_hash_of(path, &e->left_out, &opened, hash, NULL) ||
        !exti__copy_same_id(&opened, id) || exti__fs_own_id(path, &after, &trusted, NULL) ||
        !exti__copy_same_id(&after, id))
        return false;
    memcpy(out, hash, sizeof hash);
    return true;
}

static bool has_recorded_hash(const char *path, const struct exti_entry *e,
                              const struct exti_file_id *now)
{
    char hash[EXTI_HASH_MAX];

    return *e->copy_hash && exti__copy_hash_file(path, e, now, hash) &&
           strcmp(hash, e->copy_hash) == 0;
}

bool exti__copy_is_recorded(const char *path, const struct exti_entry *e, bool any_owner,
                            struct exti_file_id *now)
{
    bool trusted;

    return !exti__fs_own_id(path, now, &trusted, NULL) && (trusted || any_owner) &&
           now->size == e->copy_id.size &&
           (exti__copy_same_id(now, &e->copy_id) || has_recorded_hash(path, e, now));
}

enum exti_copy_state exti__copy_reported_state(const char *path, const struct exti_entry *e)
{
    struct exti_error why = {0};
    struct exti_file_id now;
    bool trusted;
    const int rc = exti__fs_own_id(path, &now, &trusted, &why);

    if (rc)
        return exti__is_unseen(rc, &why) ? EXTI_COPY_UNKNOWN : EXTI_COPY_MISSING;
    return now.size == e->copy_id.size &&
                   (exti__copy_same_id(&now, &e->copy_id) || has_recorded_hash(path, e, &now) ||
                    (!*e->copy_hash && now.mtime_ns == e->copy_id.mtime_ns))
               ? EXTI_COPY_FRESH
               : EXTI_COPY_MISSING;
}
