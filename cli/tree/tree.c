#include "cli/tree/tree.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/find/abi.h"
#include "cli/find/contexts.h"
#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/output/progress.h"

struct folder {
    char *path;       /* owned */
    const char *real; /* without links; in `seen` */
};

/* A directory entry that may be a folder or a library. */
struct name {
    char *text; /* owned */
    enum cli_type type;
};

struct walk {
    struct cli_tree *tree;
    struct cli_progress *bar;
    char *except;           /* owned; without links */
    void *seen;             /* tsearch(3) tree of the paths seen, without links */
    struct folder *folders; /* still to be read */
    size_t folder_count, folder_cap;
    size_t file_cap;
    struct name *names; /* of the folder that is being read */
    size_t name_count, name_cap;
    bool has_manifest; /* the folder has a file of that name, maybe another program's */
    bool full;         /* out of memory */
};

static int text_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);

    return n > m && strcasecmp(name + n - m, suffix) == 0;
}

/* "libfoo.so.1.2" too, but not "libfoo.so.debug". */
static bool is_library_name(const char *name)
{
    const char *so = strstr(name, ".so.");

    if (so != NULL && so[4 + strspn(so + 4, "0123456789.")] == '\0' && so[4] != '\0')
        return true;
    return ends_in(name, ".so") || ends_in(name, ".pyd") || ends_in(name, ".dylib") ||
           ends_in(name, ".dll");
}

/* Takes ownership of `path` and returns it if it is new, else NULL. */
static const char *first_seen(struct walk *w, char *path)
{
    char **node = path != NULL ? tsearch(path, &w->seen, text_order) : NULL;

    if (node != NULL && *node == path)
        return path;
    w->full = w->full || node == NULL;
    free(path);
    return NULL;
}

static bool grow_array(void *array, size_t *cap, size_t count, size_t size)
{
    void **items = array;

    if (count < *cap)
        return true;
    size_t more = *cap != 0 ? 2 * *cap : 64;
    void *grown = cli_resize(*items, more * size);
    if (grown == NULL)
        return false;
    *items = grown;
    *cap = more;
    return true;
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 &&
           (path[n] == '\0' || strchr(CLI_SEPARATORS, path[n]) != NULL);
}

/* Takes ownership of both paths. */
static void add_folder(struct walk *w, char *path, char *real)
{
    bool is_out = w->except != NULL && is_below(real, w->except);
    const char *seen = is_out ? NULL : first_seen(w, real);

    if (is_out)
        free(real);
    if (seen != NULL &&
        grow_array(&w->folders, &w->folder_cap, w->folder_count, sizeof *w->folders)) {
        w->folders[w->folder_count++] = (struct folder){path, seen};
        return;
    }
    w->full = w->full || seen != NULL;
    free(path);
}

static void add_library_file(struct walk *w, char *path, char *real)
{
    const char *seen = first_seen(w, real);
    char *own = seen != NULL ? cli_copy_text(seen) : NULL;

    if (own != NULL &&
        grow_array(&w->tree->files, &w->file_cap, w->tree->count, sizeof *w->tree->files)) {
        w->tree->files[w->tree->count++] = (struct cli_tree_file){.path = path, .real = own};
        return;
    }
    w->full = w->full || seen != NULL;
    free(own);
    free(path);
}

static void leave_out(struct walk *w, const char *path, const char *says, const char *why)
{
    w->tree->unread++;
    cli_progress_hide(w->bar);
    cli_fail(path, "%s: %s", says, why);
    cli_progress_show(w->bar);
}

/* A link may lead nowhere, and a file may have been removed meanwhile.  Anything else that keeps us
 * from a file is said, as a library may be left out for it. */
static void leave_out_unless_gone(struct walk *w, const char *path)
{
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        leave_out(w, path, "cannot look up what it is", strerror(errno));
}

static bool look_at(struct walk *w, const char *path, struct cli_stat *st)
{
    if (cli_stat(path, st))
        return true;
    leave_out_unless_gone(w, path);
    return false;
}

static char *resolve(struct walk *w, const char *path)
{
    char *real = cli_full_path(path);

    if (real == NULL)
        leave_out_unless_gone(w, path);
    return real;
}

/* Few files in a tree are libraries, so system calls are saved: other files are not looked at, and
 * only symbolic links are resolved. */
static void take_name(struct walk *w, const struct folder *at, const struct name *n)
{
    struct cli_stat st = {.is_dir = n->type == CLI_TYPE_DIR, .is_file = n->type == CLI_TYPE_FILE};
    char *path = cli_join(at->path, n->text), *real = NULL;
    bool is_wanted = path != NULL && (n->type != CLI_TYPE_UNKNOWN || look_at(w, path, &st));

    w->full = w->full || path == NULL;
    is_wanted = is_wanted && (st.is_dir || (st.is_file && is_library_name(n->text)));
    if (is_wanted)
        real = n->type != CLI_TYPE_UNKNOWN ? cli_join(at->real, n->text) : resolve(w, path);
    if (real == NULL)
        free(path);
    else if (st.is_dir)
        add_folder(w, path, real);
    else
        add_library_file(w, path, real);
}

static bool collect_name(void *user, const char *name, enum cli_type type)
{
    struct walk *w = user;

    if (strcmp(name, CLI_MANIFEST) == 0)
        w->has_manifest = true;
    /* Half the folders of an installation are __pycache__, which have no libraries. */
    if (strcmp(name, "__pycache__") == 0 || (type == CLI_TYPE_FILE && !is_library_name(name)))
        return true;
    char *text = cli_copy_text(name);
    if (text == NULL || !grow_array(&w->names, &w->name_cap, w->name_count, sizeof *w->names)) {
        free(text);
        w->full = true;
        return false;
    }
    w->names[w->name_count++] = (struct name){text, type};
    return true;
}

/* ---- kinds of files -------------------------------------------------------------------------- */

/* A file that the system does not let us read is a library for all we know; so is one that is
 * broken, which whatever opens it next reports. */
static bool has_init(struct cli_tree_file *f)
{
    struct exti_image *im = NULL;
    struct exti_symbol_info symbol = {.size = sizeof symbol};
    struct exti_error err;
    bool found = false;
    int rc = exti_inspect(f->path, &im, &err);

    if (rc == EXTI_E_IO) {
        f->error = cli_alloc(sizeof *f->error);
        *f->error = err;
    }
    if (!cli_worked(rc))
        return false;
    for (size_t i = 0; !found && exti_image_symbol(im, i, &symbol) == 0; i++)
        found = (symbol.flags & EXTI_SYM_EXPORT) != 0 && strncmp(symbol.name, "PyInit", 6) == 0;
    exti_image_free(im);
    return found;
}

/* By the name if that is enough, else by the symbols. */
static void classify(struct cli_tree_file *f)
{
    f->abi = cli_abi_of(f->path);
    f->abi3 = cli_is_abi3(f->path);
    /* Whoever opens one that is empty, or that cannot be read, reports that. */
    if (cli_magic_of(f->path) == CLI_MAGIC_OTHER)
        f->skipped = cli_copy_text("is not a native library");
    else if (f->abi.major != 0 || f->abi3 || ends_in(f->path, ".pyd") || has_init(f))
        f->kind = CLI_TREE_EXTENSION;
    else
        f->kind = CLI_TREE_LIBRARY;
}

struct classifying {
    struct cli_tree *tree;
    pthread_mutex_t lock; /* guards next */
    size_t next;
};

static void *classify_some(void *user)
{
    struct classifying *c = user;

    for (;;) {
        pthread_mutex_lock(&c->lock);
        size_t i = c->next++;
        pthread_mutex_unlock(&c->lock);
        if (i >= c->tree->count)
            return NULL;
        classify(&c->tree->files[i]);
    }
}

/* Two threads, since some files have many symbols; one if the second cannot be started. */
static void classify_all(struct cli_tree *t)
{
    struct classifying c = {.tree = t, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t second;
    bool is_started = t->count > 1 && pthread_create(&second, NULL, classify_some, &c) == 0;

    classify_some(&c);
    if (is_started)
        pthread_join(second, NULL);
}

static int compare_files(const void *a, const void *b)
{
    const struct cli_tree_file *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->path, y->path);
}

/* Web applications have a manifest.json too.  One that is damaged or unreadable may belong to a
 * context, whose copies must not be copied again, or to another program, and then requested files
 * are missing: so skipping the folder is reported. */
static bool is_context(struct walk *w, const struct folder *at)
{
    struct exti_dir *d = NULL;
    struct exti_error err;
    int rc = exti_dir_read(at->path, &d, &err);

    exti_dir_free(d);
    if (rc == EXTI_E_ARG || (rc == EXTI_E_IO && (err.os_error == ENOENT || err.os_error == EISDIR)))
        return false;
    if (rc != 0 && rc != EXTI_E_UNSUPPORTED)
        leave_out(w, at->path, "skipped, because its " CLI_MANIFEST " may be a context's",
                  err.message);
    return true;
}

static void look_into(struct walk *w, const struct folder *at)
{
    w->has_manifest = false;
    if (!cli_each_name(at->path, collect_name, w))
        leave_out(w, at->path, "cannot read the directory", strerror(errno));
    bool is_out = w->has_manifest && !w->full && is_context(w, at);
    for (size_t i = 0; i < w->name_count; i++) {
        if (!is_out && !w->full)
            take_name(w, at, &w->names[i]);
        free(w->names[i].text);
    }
    w->name_count = 0;
}

static void walk_all(struct walk *w, const char *dir)
{
    char *first = cli_copy_text(dir), *real = first != NULL ? cli_full_path(first) : NULL;

    w->full = first == NULL;
    if (real != NULL) {
        add_folder(w, first, real);
    } else {
        if (first != NULL)
            leave_out(w, dir, "cannot read the directory", strerror(errno));
        free(first);
    }
    while (w->folder_count > 0 && !w->full) {
        const struct folder at = w->folders[--w->folder_count];

        cli_progress_step(w->bar, 0, at.path);
        look_into(w, &at);
        free(at.path);
    }
}

static void free_walk(struct walk *w)
{
    for (size_t i = 0; i < w->folder_count; i++)
        free(w->folders[i].path);
    free(w->folders);
    free(w->names);
    free(w->except);
    while (w->seen != NULL) {
        char *path = *(char **)w->seen;
        tdelete(path, &w->seen, text_order);
        free(path);
    }
}

int cli_tree_find(struct cli_tree *t, const char *dir, const char *except, struct cli_progress *bar)
{
    struct walk w = {.tree = t, .bar = bar};

    if (except != NULL)
        w.except = cli_full_path(except);
    walk_all(&w, dir);
    if (!w.full)
        classify_all(t);
    if (t->count > 0)
        qsort(t->files, t->count, sizeof *t->files, compare_files);
    free_walk(&w);
    return w.full ? cli_fail(NULL, "out of memory") : CLI_OK;
}

void cli_tree_free(struct cli_tree *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->files[i].path);
        free(t->files[i].real);
        free(t->files[i].skipped);
        free(t->files[i].error);
    }
    free(t->files);
    *t = (struct cli_tree){0};
}
