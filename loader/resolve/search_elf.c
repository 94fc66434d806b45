#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/elf_format.h"
#include "loader/resolve/api_name.h"
#include "loader/resolve/search_priv.h"

/* ---- what a file is ---- */

int exti__elf_kind(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err)
{
    struct exti_cur cur;

    if (file.n < SELFMAG || memcmp(file.p, ELFMAG, SELFMAG) != 0)
        return exti__fail(err, EXTI_E_FORMAT, 0, "is in the search path but no ELF file");
    if (file.n < EI_NIDENT + 4)
        return exti__fail(err, EXTI_E_FORMAT, 0, "is in the search path but too short");
    out->class = file.p[EI_CLASS];
    out->data = file.p[EI_DATA];
    cur = exti__cur(file, out->data == ELFDATA2MSB);
    exti__cur_skip(&cur, EI_NIDENT + 2);
    out->machine = exti__cur_u16(&cur);
    return 0;
}

/* What ldconfig calls it: FLAG_ELF_LIBC6 and the machine, sysdeps/generic/ldconfig.h; 0 where one
 * machine has several. */
static uint32_t cache_kind(struct exti_elf_kind k)
{
    static const struct {
        uint16_t machine;
        uint8_t class;
        uint32_t kind;
    } kinds[] = {
        {EM_X86_64, ELFCLASS64, 0x0303},  {EM_X86_64, ELFCLASS32, 0x0803},
        {EM_386, ELFCLASS32, 0x0003},     {EM_AARCH64, ELFCLASS64, 0x0a03},
        {EM_ARM, ELFCLASS32, 0x0903},     {EM_S390, ELFCLASS64, 0x0403},
        {EM_PPC64, ELFCLASS64, 0x0503},   {EM_RISCV, ELFCLASS64, 0x1003},
        {EM_SPARCV9, ELFCLASS64, 0x0103},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].machine == k.machine && kinds[i].class == k.class)
            return kinds[i].kind;
    return 0;
}

/* ---- names with $ in them ---- */

enum { TOKENS = 3 };
struct token {
    const char *name, *value;
    size_t n; /* of the value */
};

/* The length of the token behind the $ at `p`, or 0: without braces it ends where no identifier
 * could go on. */
static size_t token_length(const char *p, const char *name)
{
    const bool braced = *p == '{';
    const size_t n = strlen(name);
    const char *end;

    if (strncmp(p + braced, name, n) != 0)
        return 0;
    end = p + braced + n;
    if (braced)
        return *end == '}' ? n + 2 : 0;
    return strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ? 0 : n;
}

/* The token at the $ at `p`, or NULL for a $ that stands for itself. */
static const struct token *token_at(const struct token *tokens, const char *p, size_t *length)
{
    for (size_t i = 0; i < TOKENS; i++) {
        *length = token_length(p + 1, tokens[i].name);
        if (*length)
            return &tokens[i];
    }
    return NULL;
}

/* Writes the expansion to `out`, unless that is NULL, and gives its length; SIZE_MAX where a token
 * has no value. */
static size_t expand(const struct token *tokens, const char *text, char *out)
{
    size_t n = 0;

    for (const char *p = text; *p;) {
        size_t length;
        const struct token *t = *p == '$' ? token_at(tokens, p, &length) : NULL;

        if (t && !t->value)
            return SIZE_MAX;
        if (out)
            memcpy(out + n, t ? t->value : p, t ? t->n : 1);
        n += t ? t->n : 1;
        p += t ? length + 1 : 1;
    }
    if (out)
        out[n] = 0;
    return n;
}

static size_t folder_length(const char *path)
{
    const char *slash = exti__path_last_slash(path);

    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

int exti__search_expand(const struct exti_search *s, const char *path, const char *text, char **out,
                        struct exti_error *err)
{
    const struct token tokens[TOKENS] = {
        {"ORIGIN", path && exti__path_is_absolute(path) ? path : NULL,
         path ? folder_length(path) : 0},
        {"LIB", s->lib, s->lib ? strlen(s->lib) : 0},
        {"PLATFORM", s->platform, s->platform ? strlen(s->platform) : 0},
    };
    const size_t n = expand(tokens, text, NULL);
    char *made = NULL;

    if (n != SIZE_MAX) {
        if (n >= EXTI_PATH_MAX * 16)
            return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                              "a library name or search path expands to %zu bytes", n);
        made = exti__alloc(n + 1);
        if (!made)
            return exti__fail_nomem(err);
        expand(tokens, text, made);
    }
    *out = made;
    return 0;
}

/* ---- folders ---- */

/* One look-up. */
struct lookup {
    const struct exti_search *s;
    const char *name;
    struct exti_elf_kind kind;
    char *found; /* owned; the answer */
};

static bool is_absent(int os_error)
{
    return os_error == ENOENT || os_error == ENOTDIR || os_error == EACCES || os_error == ELOOP ||
           os_error == ENAMETOOLONG;
}

/* Makes `path` the answer if a file for the right machine is there. */
static int try_file(struct lookup *l, const char *path, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_mapping m;
    struct exti_elf_kind kind;
    int rc = exti__fs_map(path, &m, NULL, &e);

    if (rc == EXTI_E_IO && is_absent(e.os_error))
        return 0;
    if (rc) {
        if (err)
            *err = e;
        return rc;
    }
    rc = exti__elf_kind(exti__span(m.p, m.n), &kind, err);
    exti__fs_unmap(&m);
    if (rc)
        exti__error_file(err, path);
    if (rc || kind.class != l->kind.class || kind.data != l->kind.data ||
        kind.machine != l->kind.machine)
        return rc;
    l->found = exti__strdup(path);
    return l->found ? 0 : exti__fail_nomem(err);
}

/* "dir/name"; an empty `dir` is the current folder. */
static int try_in(struct lookup *l, const char *dir, const char *name, struct exti_error *err)
{
    char *path = *dir ? exti__path_join(dir, name) : exti__strdup(name);
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    rc = try_file(l, path, err);
    exti__free(path);
    return rc;
}

static int try_sub(struct lookup *l, const char *dir, const char *sub, struct exti_error *err)
{
    char *path = exti__path_join(*dir ? dir : ".", sub);
    int rc = path ? try_in(l, path, l->name, err) : exti__fail_nomem(err);

    exti__free(path);
    return rc;
}

static int try_hwcap(struct lookup *l, const char *dir, const char *hwcap, struct exti_error *err)
{
    char *sub = exti__path_join("glibc-hwcaps", hwcap);
    int rc = sub ? try_sub(l, dir, sub, err) : exti__fail_nomem(err);

    exti__free(sub);
    return rc;
}

static int try_dir(struct lookup *l, const char *dir, struct exti_error *err)
{
    int rc = 0;

    for (char **h = l->s->hwcaps; *h && !rc && !l->found; h++)
        rc = try_hwcap(l, dir, *h, err);
    for (char **sub = l->s->legacy; *sub && !rc && !l->found; sub++)
        rc = try_sub(l, dir, *sub, err);
    return rc || l->found ? rc : try_in(l, dir, l->name, err);
}

/* One entry of a path of `owner`.  What is empty as it stands is the current folder, what expands
 * to nothing is passed over. */
static int try_entry(struct lookup *l, char *entry, const char *owner, struct exti_error *err)
{
    char *dir;
    size_t n;
    int rc;

    if (!*entry)
        return try_dir(l, entry, err);
    rc = exti__search_expand(l->s, owner, entry, &dir, err);
    if (rc || !dir)
        return rc;
    for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = 0;
    rc = *dir ? try_dir(l, dir, err) : 0;
    exti__free(dir);
    return rc;
}

static int try_path(struct lookup *l, const char *path, const char *separators, const char *owner,
                    struct exti_error *err)
{
    char *text, *p, *next;
    int rc = 0;

    if (!path || !*path)
        return 0;
    text = exti__strdup(path);
    if (!text)
        return exti__fail_nomem(err);
    for (p = text; p && !rc && !l->found; p = next) {
        next = strpbrk(p, separators);
        if (next)
            *next++ = 0;
        rc = try_entry(l, p, owner, err);
    }
    exti__free(text);
    return rc;
}

/* ---- the order of them ---- */

/* A file with DT_RUNPATH has no DT_RPATH, as ld.so sees it. */
static int try_rpaths(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    int rc = 0;

    if (from->runpath)
        return 0;
    for (; from && !rc && !l->found; from = from->loader)
        if (!from->runpath)
            rc = try_path(l, from->rpath, ":", from->path, err);
    if (!rc && !l->found)
        rc = try_path(l, l->s->program_rpath, ":", l->s->program_path, err);
    return rc;
}

static bool is_default(const struct exti_search *s, const char *path)
{
    for (char **d = s->dirs; *d; d++)
        if (strncmp(path, *d, strlen(*d)) == 0 && path[strlen(*d)] == '/')
            return true;
    return false;
}

static int try_cache(struct lookup *l, bool no_default, struct exti_error *err)
{
    const char *path = NULL;
    int rc = exti__ld_cache_find(&l->s->cache, l->name, cache_kind(l->kind),
                                 (const char *const *)l->s->hwcaps, &path, err);

    if (rc || !path || (no_default && is_default(l->s, path)))
        return rc;
    return try_file(l, path, err);
}

/* Where default look-ups have led: most files of a tree ask for the same few libraries. */
struct exti_search_memory {
    pthread_mutex_t lock;
    void *found; /* tree of struct found */
};

struct found {
    struct exti_elf_kind kind;
    bool no_default;
    const char *name, *path; /* in the same block */
};

static int by_question(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    if (order)
        return order;
    if (x->no_default != y->no_default)
        return x->no_default ? 1 : -1;
    if (x->kind.machine != y->kind.machine)
        return x->kind.machine < y->kind.machine ? -1 : 1;
    return (x->kind.class - y->kind.class) * 256 + x->kind.data - y->kind.data;
}

/* What has gone since has to be looked for again. */
static bool recall(struct lookup *l, bool no_default)
{
    struct exti_search_memory *memory = l->s->memory;
    const struct found key = {l->kind, no_default, l->name, NULL};
    struct found *const *node;
    struct exti_file_id id;

    pthread_mutex_lock(&memory->lock);
    node = tfind(&key, &memory->found, by_question);
    if (node && !exti__fs_id((*node)->path, &id, NULL))
        l->found = exti__strdup((*node)->path);
    pthread_mutex_unlock(&memory->lock);
    return l->found != NULL;
}

static void remember(const struct lookup *l, bool no_default)
{
    struct exti_search_memory *memory = l->s->memory;
    const size_t n = strlen(l->name) + 1, m = strlen(l->found) + 1;
    struct found *f = exti__alloc(sizeof *f + n + m);
    void **node;

    if (!f)
        return;
    f->kind = l->kind;
    f->no_default = no_default;
    f->name = memcpy(f + 1, l->name, n);
    f->path = memcpy((char *)(f + 1) + n, l->found, m);
    pthread_mutex_lock(&memory->lock);
    node = tsearch(f, &memory->found, by_question);
    if (!node || *node != f)
        exti__free(f);
    pthread_mutex_unlock(&memory->lock);
}

static int search_default(struct lookup *l, bool no_default, struct exti_error *err)
{
    int rc = try_cache(l, no_default, err);

    for (char **d = l->s->dirs; *d && !rc && !l->found && !no_default; d++)
        rc = try_dir(l, *d, err);
    return rc;
}

/* What comes behind all search paths. */
static int try_default(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    const bool no_default = from->flags & EXTI_IMAGE_NODEFLIB;
    int rc;

    if (recall(l, no_default))
        return 0;
    rc = search_default(l, no_default, err);
    if (!rc && l->found)
        remember(l, no_default);
    return rc;
}

static int try_all(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    const struct exti_search *s = l->s;
    int rc = try_rpaths(l, from, err);

    if (!rc && !l->found)
        rc = try_path(l, s->library_path, ":;", s->program_path, err);
    if (!rc && !l->found)
        rc = try_path(l, from->runpath, ":", from->path, err);
    return rc || l->found ? rc : try_default(l, from, err);
}

/* The loader is loaded already, by whatever name it goes. */
static bool is_loader(const struct exti_search *s, const char *name)
{
    const char *slash = s->loader ? exti__path_last_slash(s->loader) : NULL;

    return s->loader && (strcmp(name, s->loader) == 0 || (slash && strcmp(name, slash + 1) == 0));
}

int exti__search_find(const struct exti_search *s, const struct exti_requester *from,
                      const char *name, char **out, struct exti_error *err)
{
    struct lookup l = {.s = s, .kind = from->kind};
    char *expanded;
    int rc = exti__search_expand(s, from->path, name, &expanded, err);

    if (rc)
        return rc;
    if (expanded && *expanded) {
        l.name = expanded;
        if (is_loader(s, expanded))
            rc = try_file(&l, s->loader, err);
        else if (strchr(expanded, '/'))
            rc = try_file(&l, expanded, err);
        else
            rc = try_all(&l, from, err);
    }
    exti__free(expanded);
    if (rc)
        exti__free(l.found);
    else
        *out = l.found;
    return rc;
}

/* What stops the search is as nothing found; only memory is an error. */
static int leads_to(int rc, struct lookup *l, const struct exti_file_id *file, bool *out,
                    struct exti_error *err)
{
    struct exti_file_id id;

    *out = !rc && l->found && !exti__fs_id(l->found, &id, NULL) && id.device == file->device &&
           id.inode == file->inode;
    exti__free(l->found);
    l->found = NULL;
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

/* The copy has a search path of its own, so that DT_RPATH of others does not count for it, unless
 * it is DT_RPATH itself. */
int exti__search_by_name(const struct exti_search *s, const struct exti_requester *from,
                         const char *name, const struct exti_file_id *file, bool *out,
                         struct exti_error *err)
{
    struct exti_requester copy = *from;
    struct lookup l = {.s = s, .name = name, .kind = from->kind};
    int rc;

    *out = exti__path_is_absolute(name) && !strchr(name, '$');
    if (strpbrk(name, "/$"))
        return 0;
    *out = is_loader(s, name);
    if (*out)
        return 0;
    rc = try_default(&l, from, NULL);
    rc = leads_to(rc, &l, file, out, err);
    if (rc || !*out || !(from->rpath || from->runpath || s->library_path))
        return rc;
    if (!from->rpath && !from->runpath)
        copy.runpath = "";
    rc = try_all(&l, &copy, NULL);
    return leads_to(rc, &l, file, out, err);
}

/* ---- the process's part ---- */

static int copy_text(const char *text, char **out, struct exti_error *err)
{
    if (text && *text && !(*out = exti__strdup(text)))
        return exti__fail_nomem(err);
    return 0;
}

static int find_dirs(struct exti_search *s, const struct exti_search_opts *o,
                     struct exti_error *err)
{
    static const char *const usual[] = {"/lib", "/usr/lib", NULL};
    struct exti_mapping m;
    int rc;

    if (o->dirs)
        return exti__strings_copy(o->dirs, &s->dirs, err);
    if (s->loader) {
        rc = exti__fs_map(s->loader, &m, NULL, err);
        if (rc)
            return rc;
        rc = exti__host_dirs(exti__span(m.p, m.n), &s->dirs, err);
        exti__fs_unmap(&m);
        if (rc || *s->dirs)
            return rc;
        exti__strings_free(s->dirs);
        s->dirs = NULL;
    }
    return exti__strings_copy(usual, &s->dirs, err);
}

/* A system need not have a cache, and one of an unknown form is as none for ld.so too. */
static int open_cache(struct exti_search *s, const char *file, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc;

    if (!file)
        file = "/etc/ld.so.cache";
    if (!*file)
        return 0;
    rc = exti__fs_map(file, &s->cache_file, NULL, &e);
    if (rc == EXTI_E_IO && is_absent(e.os_error))
        return 0;
    if (rc == EXTI_E_FORMAT) /* is empty */
        return 0;
    if (rc) {
        if (err)
            *err = e;
        return rc;
    }
    rc = exti__ld_cache_open(exti__span(s->cache_file.p, s->cache_file.n), &s->cache, NULL);
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

/* A static program has no search path. */
static int open_program(struct exti_search *s, const char *path, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_mapping m;
    const char *rpath = NULL;
    int rc = copy_text(path, &s->program_path, err);

    if (rc || !path)
        return rc;
    rc = exti__fs_map(path, &m, NULL, err);
    if (rc)
        return rc;
    rc = exti__elf_program_rpath(exti__span(m.p, m.n), &rpath, &e);
    if (!rc)
        rc = copy_text(rpath, &s->program_rpath, &e);
    exti__fs_unmap(&m);
    if (!rc || rc == EXTI_E_UNSUPPORTED)
        return 0;
    exti__error_file(&e, path);
    if (err)
        *err = e;
    return rc;
}

static int fill(struct exti_search *s, const struct exti_search_opts *o, struct exti_error *err)
{
    const char *lib;
    int rc = copy_text(o->library_path, &s->library_path, err);

    if (!rc)
        rc = o->loader ? copy_text(o->loader, &s->loader, err) : exti__host_loader(&s->loader, err);
    if (!rc)
        rc = find_dirs(s, o, err);
    if (rc)
        return rc;
    /* The first default folder is /$LIB. */
    lib = o->lib ? o->lib : *s->dirs ? *s->dirs + strspn(*s->dirs, "/") : NULL;
    rc = copy_text(lib, &s->lib, err);
    if (!rc)
        rc = copy_text(o->platform ? o->platform : exti__host_platform(), &s->platform, err);
    if (!rc)
        rc = exti__strings_copy(o->hwcaps ? o->hwcaps : exti__host_hwcaps(), &s->hwcaps, err);
    if (!rc)
        rc = exti__host_legacy(s->platform, &s->legacy, err);
    if (!rc)
        rc = open_cache(s, o->cache_file, err);
    return rc ? rc : open_program(s, o->program, err);
}

static int make_memory(struct exti_search *s, struct exti_error *err)
{
    s->memory = exti__calloc(1, sizeof *s->memory);
    if (!s->memory)
        return exti__fail_nomem(err);
    pthread_mutex_init(&s->memory->lock, NULL);
    return 0;
}

static void free_memory(struct exti_search_memory *memory)
{
    if (!memory)
        return;
    exti__tree_free(&memory->found, by_question, exti__free);
    pthread_mutex_destroy(&memory->lock);
    exti__free(memory);
}

int exti__search_open(const struct exti_search_opts *opts, struct exti_search **out,
                      struct exti_error *err)
{
    struct exti_search *s = exti__calloc(1, sizeof *s);
    int rc;

    if (!s)
        return exti__fail_nomem(err);
    rc = make_memory(s, err);
    if (!rc)
        rc = fill(s, opts, err);
    if (rc)
        exti__search_close(s);
    else
        *out = s;
    return rc;
}

int exti__search_open_running(struct exti_search **out, struct exti_error *err)
{
    struct exti_search_opts o = {0};
    char *library_path, *program = NULL;
    int rc = exti__host_library_path(&library_path, err);

    if (rc)
        return rc;
    /* No DT_RPATH is known of a program that cannot be read: gone since, or only to be executed. */
    rc = exti__fs_realpath("/proc/self/exe", &program, NULL);
    if (rc != EXTI_E_NOMEM) {
        o.library_path = library_path;
        o.program = program;
        rc = exti__search_open(&o, out, err);
    } else {
        exti__fail_nomem(err);
    }
    if (rc && rc != EXTI_E_NOMEM && program) {
        o.program = NULL;
        rc = exti__search_open(&o, out, err);
    }
    exti__free(program);
    exti__free(library_path);
    return rc;
}

void exti__search_close(struct exti_search *s)
{
    if (!s)
        return;
    exti__free(s->library_path);
    exti__free(s->lib);
    exti__free(s->platform);
    exti__free(s->loader);
    exti__free(s->program_path);
    exti__strings_free(s->dirs);
    exti__strings_free(s->hwcaps);
    exti__strings_free(s->legacy);
    exti__fs_unmap(&s->cache_file);
    exti__free(s->program_rpath);
    free_memory(s->memory);
    exti__free(s);
}

const char *const *exti__search_dirs(const struct exti_search *s)
{
    return (const char *const *)s->dirs;
}

/* ---- what the closure asks ---- */

static int key(char **out, struct exti_error *err)
{
    struct exti_file_id id = {0};
    char *path = NULL;
    size_t n;
    int rc = exti__host_library_path(&path, err);

    if (rc)
        return rc;
    exti__fs_id("/etc/ld.so.cache", &id, NULL);
    n = (path ? strlen(path) : 0) + 80;
    *out = exti__alloc(n);
    if (*out)
        snprintf(*out, n, "%" PRIu64 " %" PRId64 " %" PRIu64 " %s", id.size, id.mtime_ns, id.inode,
                 path ? path : "");
    exti__free(path);
    return *out ? 0 : exti__fail_nomem(err);
}

static bool same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

const struct exti_search_ops *exti__search_elf(void)
{
    static const struct exti_search_ops ops = {
        .format = EXTI_FORMAT_ELF,
        .open_running = exti__search_open_running,
        .close = exti__search_close,
        .key = key,
        .kind = exti__elf_kind,
        .same_name = same_name,
        .is_api = exti__is_api_name,
        .loaded_name = exti__search_expand,
        .remembers = true,
        .find = exti__search_find,
        .by_name = exti__search_by_name,
    };

    return &ops;
}
