#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/copy_tree.h"
#include "cli/system.h"

static const char help[] =
    "usage: extisolate copy-tree [OPTION]... DIR CTXDIR\n"
    "\n"
    "Copies the native extension modules in DIR and below it, a virtual environment say or a\n"
    "site-packages folder, and the libraries they need, into the context directories CTXDIR/0,\n"
    "CTXDIR/1 and so on, which 'extisolate run --dir CTXDIR' uses.  Libraries in DIR that nothing\n"
    "there needs, but modules may open as they run, are copied too unless they are shared.\n"
    "Modules for another Python or machine are left out.\n"
    "\n"
    "What is up to date is left alone, so a second call copies only what has changed since, and\n"
    "one that was cut short is gone on with by calling it again.\n"
    "\n"
    "options:\n"
    "  --contexts N      how many contexts, 1 when not given\n"
    "  --libpython PATH  the libpython to copy into new contexts.  When not given: that of the\n"
    "                    Python in DIR (DIR/bin/python; if DIR is a folder of a virtual\n"
    "                    environment, that one's), else found as 'copy' does\n"
    "  --name NAME       names new contexts NAME-0, NAME-1...: letters, digits, - and _, at\n"
    "                    most 24\n"
    "  --rename          give the API symbols private names, for programs that export the API\n"
    "                    themselves\n" CLI_CHOICE_HELP
    "  --jobs N          how many threads copy, as many as there are processors when not given\n"
    "  --sync            write to the disk before each copy counts (fsync)\n"
    "  --why             tell why libraries were isolated or shared even if nothing was copied\n"
    "  --json            print what was done as JSON, with all reasons\n"
    "  -h, --help        show this\n"
    "\n"
    "examples:\n"
    "  extisolate copy-tree --contexts 4 venv ctx\n"
    "  extisolate run --python venv/bin/python --contexts 4 --dir ctx app.py\n"
    "  extisolate copy-tree --json /usr/lib/python3/dist-packages ctx | jq .refused\n"
    "\n"
    "Prints how much was copied, how many libraries were isolated and shared, what was skipped "
    "and,\n"
    "if anything was copied, which libraries those are and why.  Exit status: 0 done, 1 a file "
    "was\n"
    "refused or a folder not read (all else is done), 2 wrong usage.\n";

#define NAME_MAX_CHARS 24
#define PARENTS 4 /* DIR/lib/python3.11/site-packages/package is four folders down */
static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

struct request {
    const char *dir, *ctxdir, *name;
    char *libpython; /* owned; NULL: the contexts have theirs */
    struct cli_abi abi;
    int contexts, jobs;
    bool json, why;
    uint32_t flags;
    struct cli_choice choice;

    struct cli_tree tree;
    struct tree_report report;
    const char **paths;    /* modules, then libraries */
    size_t *results;       /* of those, in the report */
    size_t libraries, all; /* how many */

    pthread_mutex_t lock; /* guards what follows, and what contexts have in common of the report */
    size_t next;          /* context */
    size_t done;
    struct cli_progress *bar;
};

enum { CONTEXTS = 256, LIBPYTHON, NAME, RENAME, JOBS, SYNC, WHY, JSON };

static int take_option(struct request *r, int o)
{
    switch (o) {
    case CONTEXTS:
    case JOBS:
        if (!cli_parse_count(optarg, o == JOBS ? &r->jobs : &r->contexts))
            return cli_usage("copy-tree", "--%s takes a number from 1 to %d, not '%s'",
                             o == JOBS ? "jobs" : "contexts", CLI_CONTEXTS_MAX, optarg);
        return CLI_OK;
    case LIBPYTHON:
        if (*optarg == '\0')
            return cli_usage("copy-tree", "--libpython is empty: is a shell variable unset?");
        free(r->libpython);
        r->libpython = strdup(optarg);
        return r->libpython != NULL ? CLI_OK : cli_fail(NULL, "out of memory");
    case NAME:
        r->name = optarg;
        if (strlen(optarg) - 1 < NAME_MAX_CHARS && strspn(optarg, name_chars) == strlen(optarg))
            return CLI_OK;
        return cli_usage("copy-tree", "--name takes 1 to %d letters, digits, '-' and '_', not '%s'",
                         NAME_MAX_CHARS, optarg);
    case RENAME:
        r->flags |= EXTI_CTX_RENAME;
        return CLI_OK;
    case SYNC:
        r->flags |= EXTI_CTX_SYNC;
        return CLI_OK;
    case WHY:
        r->why = true;
        return CLI_OK;
    case JSON:
        r->json = true;
        return CLI_OK;
    default:
        return o == '?' ? CLI_USAGE : cli_choice_option(&r->choice, "copy-tree", o, optarg);
    }
}

/* CLI_OK, or -1 after help was printed. */
static int parse(struct request *r, int argc, char **argv)
{
    static const struct option longs[] = {{"contexts", required_argument, NULL, CONTEXTS},
                                          {"libpython", required_argument, NULL, LIBPYTHON},
                                          {"name", required_argument, NULL, NAME},
                                          {"rename", no_argument, NULL, RENAME},
                                          CLI_CHOICE_OPTIONS,
                                          {"jobs", required_argument, NULL, JOBS},
                                          {"sync", no_argument, NULL, SYNC},
                                          {"why", no_argument, NULL, WHY},
                                          {"json", no_argument, NULL, JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int o;

    while ((o = cli_getopt("copy-tree", argc, argv, ":h", longs)) != -1) {
        if (o == 'h') {
            fputs(help, stdout);
            return -1;
        }
        int status = take_option(r, o);
        if (status != CLI_OK)
            return status;
    }
    if (cli_no_empty("copy-tree", argc, argv, optind) != CLI_OK)
        return CLI_USAGE;
    if (argc - optind != 2)
        return cli_usage("copy-tree", argc - optind < 2 ? "needs DIR and CTXDIR"
                                                        : "takes one DIR and one CTXDIR");
    r->dir = argv[optind];
    r->ctxdir = argv[optind + 1];
    return CLI_OK;
}

/* ---- before anything is made --------------------------------------------------------------------- */

static int check_folders(const struct request *r)
{
    struct cli_stat st;

    if (!cli_stat(r->dir, &st))
        return cli_fail(r->dir, "cannot look it up: %s", strerror(errno));
    if (!st.is_dir) {
        cli_fail(r->dir, "is a file, not a directory");
        cli_hint("'extisolate copy FILE... CTXDIR' copies single files");
        return CLI_FAILED;
    }
    if (cli_stat(r->ctxdir, &st) && !st.is_dir)
        return cli_fail(r->ctxdir, "is a file, not a directory");
    if (cli_is_context(r->ctxdir)) {
        cli_fail(r->ctxdir, "is a context directory itself, not one of context directories");
        cli_hint("name another one: the contexts become its 0, 1 and so on");
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* An interpreter in `dir` or, if that lies in a virtual environment, of that one.  To be freed, or NULL. */
static char *find_python(const char *dir)
{
    static const char *const names[] = {"bin/python3", "bin/python", "Scripts/python.exe",
                                        "python.exe"};
    char *at = cli_full_path(dir), *found = NULL;

    for (int up = 0; at != NULL && found == NULL && up <= PARENTS; up++) {
        char *config = cli_join(at, "pyvenv.cfg"), *parent;
        bool is_here = up == 0 || (config != NULL && cli_exists(config));
        for (size_t i = 0; is_here && found == NULL && i < sizeof names / sizeof *names; i++) {
            found = cli_join(at, names[i]);
            struct cli_stat st;
            if (found != NULL && (!cli_stat(found, &st) || st.is_dir)) {
                free(found);
                found = NULL;
            }
        }
        free(config);
        parent = cli_folder_of(at);
        free(at);
        at = parent;
    }
    free(at);
    return found;
}

static bool same_abi(const struct cli_abi *a, const struct cli_abi *b)
{
    return a->major == b->major && a->minor == b->minor && strcmp(a->flags, b->flags) == 0;
}

/* Two files that say which Python is meant: one of the version that most have, and one for any.  The
 * count. */
static size_t choose_speakers(const struct cli_tree *t, char **out)
{
    size_t best = 0, most = 0, any = t->count, n = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct cli_tree_file *f = &t->files[i];
        size_t same = 0;
        if (f->skipped != NULL || f->kind != CLI_TREE_EXTENSION)
            continue;
        if (f->abi.major == 0) {
            any = any == t->count || (f->abi3 && !t->files[any].abi3) ? i : any;
            continue;
        }
        /* The same as the best so far: counted already. */
        if (most > 0 && same_abi(&f->abi, &t->files[best].abi))
            continue;
        for (size_t k = i; k < t->count; k++)
            same += same_abi(&f->abi, &t->files[k].abi);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    if (most > 0)
        out[n++] = t->files[best].path;
    if (any < t->count)
        out[n++] = t->files[any].path;
    return n;
}

/* The original of the API library of a context that is there, to be freed, or NULL. */
static char *api_of(const char *dir)
{
    struct exti_dir *d = NULL;
    struct exti_copy_info info = {.size = sizeof info};
    char *found = NULL;

    if (exti_dir_read(dir, &d, NULL) != 0)
        return NULL;
    for (size_t i = 0; i < exti_dir_count(d) && found == NULL; i++)
        if (exti_dir_copy(d, i, &info) == 0 && info.is_api)
            found = strdup(info.source);
    exti_dir_free(d);
    return found;
}

/* The libpython that the contexts have, or are to have. */
static int find_libpython(struct request *r)
{
    char *speakers[2], *python;
    size_t n;

    for (size_t k = 0; r->libpython == NULL && k < r->report.context_count; k++)
        r->libpython = api_of(r->report.contexts[k].dir);
    if (r->libpython != NULL)
        return CLI_OK;
    n = choose_speakers(&r->tree, speakers);
    if (n == 0)
        return cli_fail(r->dir, "has no extension module that would tell which libpython to copy; "
                                "name it with --libpython");
    python = find_python(r->dir);
    int status = cli_find_libpython(speakers, n, python, &r->libpython);
    free(python);
    return status;
}

static int look_at_libpython(struct request *r)
{
    struct exti_error err;
    struct exti_image *api;
    struct exti_image_info info = {.size = sizeof info};

    if (exti_inspect(r->libpython, &api, &err) != 0)
        return cli_error(&err, r->libpython);
    exti_image_info(api, &info);
    r->abi = cli_abi_of_libpython(info.id != NULL ? info.id : r->libpython);
    exti_image_free(api);
    return CLI_OK;
}

static int name_contexts(struct request *r)
{
    struct tree_report *t = &r->report;

    t->context_count = (size_t)r->contexts;
    t->contexts = calloc(t->context_count, sizeof *t->contexts);
    if (t->contexts == NULL)
        return cli_fail(NULL, "out of memory");
    for (size_t k = 0; k < t->context_count; k++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", k);
        t->contexts[k].dir = cli_join(r->ctxdir, number);
        if (t->contexts[k].dir == NULL)
            return cli_fail(NULL, "out of memory");
    }
    return CLI_OK;
}

/* An extension of another CPython version would load, and crash at its first use of a struct. */
static bool skip_version(const struct request *r, struct tree_result *t)
{
    const struct cli_abi *abi = &t->file->abi;
    char message[160];

    if (cli_abi_fits(abi, &r->abi))
        return false;
    snprintf(message, sizeof message, "is built for CPython %d.%d%s, the contexts' is %d.%d%s",
             abi->major, abi->minor, abi->flags, r->abi.major, r->abi.minor, r->abi.flags);
    t->skipped = strdup(message);
    return true;
}

static int choose_files(struct request *r)
{
    struct tree_report *t = &r->report;
    const size_t n = r->tree.count;

    t->result_count = n;
    t->results = calloc(n + 1, sizeof *t->results);
    r->paths = calloc(n + 1, sizeof *r->paths);
    r->results = calloc(n + 1, sizeof *r->results);
    if (t->results == NULL || r->paths == NULL || r->results == NULL)
        return cli_fail(NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct cli_tree_file *f = &r->tree.files[i];
        struct tree_result *one = &t->results[i];
        one->file = f;
        one->copies = calloc(t->context_count, sizeof *one->copies);
        if (one->copies == NULL)
            return cli_fail(NULL, "out of memory");
        if (f->skipped != NULL || skip_version(r, one))
            continue;
        r->libraries += f->kind == CLI_TREE_LIBRARY;
        r->results[r->all] = i;
        r->paths[r->all++] = f->path;
    }
    return CLI_OK;
}

/* ---- copying ------------------------------------------------------------------------------------- */

struct pass {
    struct request *r;
    size_t context;
};

static int note(void *user, const struct exti_copied *file)
{
    struct pass *p = user;
    struct request *r = p->r;
    struct tree_context *c = &r->report.contexts[p->context];
    struct tree_result *t = &r->report.results[r->results[file->index]];

    pthread_mutex_lock(&r->lock);
    t->copies[p->context] = file->copy;
    c->made += file->copy != NULL && file->made;
    c->fresh += file->copy != NULL && !file->made;
    if (file->error != NULL && t->error == NULL && (t->error = malloc(sizeof *t->error)) != NULL)
        *t->error = *file->error;
    if (file->shared != NULL && t->shared == NULL)
        t->shared = strdup(file->shared);
    cli_progress_step(r->bar, ++r->done, t->file->path);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

/* What is left of the threads for each of the contexts that are made at the same time, and one for the
 * planning. */
static size_t threads_each(const struct request *r)
{
    size_t jobs = (size_t)r->jobs;

    return jobs == 1 ? 1
                     : jobs / (jobs < r->report.context_count ? jobs : r->report.context_count) + 1;
}

static void copy_files(struct request *r, size_t k)
{
    struct tree_context *c = &r->report.contexts[k];
    struct pass p = {r, k};
    struct exti_copy_opts opts = {.size = sizeof opts,
                                  .libraries = r->libraries,
                                  .threads = threads_each(r),
                                  .copied = note,
                                  .user = &p};
    struct exti_error err = {0};

    if (exti_copy_many(c->ctx, r->paths, r->all, &opts, &err) != 0)
        c->err = err;
}

static void copy_context(struct request *r, size_t k)
{
    struct tree_context *c = &r->report.contexts[k];
    char name[NAME_MAX_CHARS + 16];
    struct exti_ctx_opts opts = {.size = sizeof opts,
                                 .dir = c->dir,
                                 .name = r->name != NULL ? name : NULL,
                                 .api_library = r->libpython,
                                 .flags = r->flags | EXTI_CTX_COPY_ONLY | EXTI_CTX_DROP_UNUSED};

    if (r->name != NULL)
        snprintf(name, sizeof name, "%s-%zu", r->name, k);
    cli_choice_apply(&r->choice, &opts);
    if (exti_ctx_open(&c->ctx, &opts, &c->err) != 0)
        return;
    copy_files(r, k);
}

static void *copy_contexts(void *user)
{
    struct request *r = user;

    for (;;) {
        pthread_mutex_lock(&r->lock);
        size_t k = r->next++;
        pthread_mutex_unlock(&r->lock);
        if (k >= r->report.context_count)
            return NULL;
        copy_context(r, k);
    }
}

/* Several contexts at once, each with several threads: what must be done in order is done in order for
 * each. */
static void copy_all(struct request *r)
{
    size_t n = r->report.context_count, started = 0;
    size_t want = n < (size_t)r->jobs ? n : (size_t)r->jobs;
    pthread_t *threads = calloc(want, sizeof *threads);

    r->bar = cli_progress_start("copying", r->all * n);
    while (threads != NULL && started + 1 < want &&
           pthread_create(&threads[started], NULL, copy_contexts, r) == 0)
        started++;
    copy_contexts(r);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
    cli_progress_end(r->bar);
}

/* ---- afterwards ---------------------------------------------------------------------------------- */

static bool same_target(const struct exti_image *a, const struct exti_image *b)
{
    struct exti_image_info x = {.size = sizeof x}, y = {.size = sizeof y};

    return exti_image_info(a, &x) == 0 && exti_image_info(b, &y) == 0 &&
           strcmp(x.format, y.format) == 0 && strcmp(x.machine, y.machine) == 0 &&
           x.bits == y.bits && x.big_endian == y.big_endian;
}

/* What is for another machine was never meant to be copied. */
static void skip_foreign(struct request *r)
{
    struct exti_image *api = NULL, *im = NULL;

    for (size_t i = 0; i < r->report.result_count; i++) {
        struct tree_result *t = &r->report.results[i];
        if (t->error == NULL || t->error->code != EXTI_E_UNSUPPORTED)
            continue;
        if (api == NULL && exti_inspect(r->libpython, &api, NULL) != 0)
            return;
        if (exti_inspect(t->file->path, &im, NULL) == 0 && !same_target(im, api)) {
            t->skipped = strdup(t->error->message);
            free(t->error);
            t->error = NULL;
        }
        exti_image_free(im);
        im = NULL;
    }
    exti_image_free(api);
}

/* The error of a context that is not one of its files'. */
static bool is_of_file(const struct request *r, const struct tree_context *c)
{
    for (size_t i = 0; i < r->report.result_count; i++) {
        const struct tree_result *t = &r->report.results[i];
        if (t->error != NULL && strcmp(t->error->message, c->err.message) == 0)
            return true;
    }
    return false;
}

static int tell(struct request *r)
{
    struct tree_report *t = &r->report;
    size_t made = 0;
    int status = r->tree.unread != 0 ? CLI_FAILED : CLI_OK;

    for (size_t k = 0; k < t->context_count; k++) {
        struct tree_context *c = &t->contexts[k];
        made += c->made;
        if (c->err.code != 0 && is_of_file(r, c))
            c->err = (struct exti_error){0};
        else if (c->err.code != 0)
            status = cli_error(&c->err, c->dir);
    }
    skip_foreign(r);
    /* The reasons take a look at all libraries. */
    t->why = made != 0 || r->json || r->why;
    if (tree_report_libraries(t) != CLI_OK)
        status = CLI_FAILED;
    if (r->json && tree_report_json(t, r->libpython) != CLI_OK)
        status = CLI_FAILED;
    if (!r->json)
        tree_report_print(t);
    return tree_report_refused(t) != 0 ? CLI_FAILED : status;
}

static int prepare(struct request *r)
{
    struct exti_quirks *q = NULL;
    struct exti_error err;
    int status = check_folders(r);

    if (status == CLI_OK)
        status = cli_open_quirks(&r->choice.quirks, &q, &err);
    exti_quirks_free(q);
    if (status == CLI_OK)
        status = name_contexts(r);
    if (status != CLI_OK)
        return status;
    struct cli_progress *bar = cli_progress_start("looking", 0);
    status = cli_tree_find(&r->tree, r->dir, r->ctxdir, bar);
    cli_progress_end(bar);
    if (status == CLI_OK && r->tree.count > 0)
        status = find_libpython(r);
    if (status == CLI_OK && r->tree.count > 0)
        status = look_at_libpython(r);
    return status == CLI_OK ? choose_files(r) : status;
}

static int work(struct request *r)
{
    int status = prepare(r);

    if (status != CLI_OK)
        return status;
    if (r->all > 0 && !cli_make_dir(r->ctxdir))
        return cli_fail(r->ctxdir, "the directory cannot be made: %s", strerror(errno));
    if (r->all > 0)
        copy_all(r);
    return tell(r);
}

static int release(struct request *r, int status)
{
    for (size_t k = 0; k < r->report.context_count; k++) {
        struct tree_context *c = r->report.contexts != NULL ? &r->report.contexts[k] : NULL;
        struct exti_error err;
        if (c != NULL && c->ctx != NULL && exti_ctx_close(c->ctx, &err) != 0)
            status = cli_error(&err, c->dir);
        if (c != NULL)
            free(c->dir);
    }
    for (size_t i = 0; r->report.results != NULL && i < r->report.result_count; i++) {
        struct tree_result *t = &r->report.results[i];
        free(t->copies);
        free(t->error);
        free(t->skipped);
        free(t->shared);
    }
    free(r->report.contexts);
    free(r->report.results);
    json_decref(r->report.libraries);
    free(r->paths);
    free(r->results);
    free(r->libpython);
    cli_tree_free(&r->tree);
    cli_choice_free(&r->choice);
    pthread_mutex_destroy(&r->lock);
    return status;
}

int cmd_copy_tree(int argc, char **argv)
{
    struct request r = {.contexts = 1};
    int status = parse(&r, argc, argv);

    pthread_mutex_init(&r.lock, NULL);
    r.report.dir = r.ctxdir;
    r.report.tree = &r.tree;
    if (r.jobs == 0)
        r.jobs = (int)cli_processors();
    if (status == CLI_OK)
        status = work(&r);
    status = release(&r, status);
    return status < 0 ? CLI_OK : status;
}
