/* Opens and closes one CPython context after the other.
 *
 *   cycle [--no-heap] CYCLES PYTHON CODE
 *   cycle --script CYCLES PYTHON SCRIPT ARG...
 *
 * After each cycle it prints "cycle N status S left L rss KB maps M fds F keys K"; the reasons
 * why a context stays mapped go to stderr.  --no-heap is the control: contexts without memory of
 * their own.  --script runs a file, and prints "proof N modules M references R leaks L" for each
 * context before it is closed.  In CODE, int(os.environ["VISIT"]) is the address of void
 * visit(void (*callback)(void)).  Each call starts a thread of this program, which calls back
 * and lives until the program ends.  int(os.environ["GONE"]) is the address of void gone(void),
 * which waits until all callbacks have returned. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/heap.h"
#include "runtime/process.h"
#include "runtime/python.h"
#include "runtime/scratch.h"

static int heap = 1;

/* The linker's --wrap redirects calls of pyrt_heap_install to the second function; the first one is
 * the function itself. */
void __real_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);
void __wrap_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);
void __wrap_pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py)
{
    if (heap)
        __real_pyrt_heap_install(h, py);
}

/* ---- threads of the program ---- */

#define VISITORS_MAX 100
static pthread_t visitors[VISITORS_MAX];
static int visitor_count;
static int held;                                            /* contexts that stay mapped */
static pthread_mutex_t leaving = PTHREAD_MUTEX_INITIALIZER; /* held until the end */
static sem_t back;
static int back_count;

static void *be_visitor(void *arg)
{
    void (*callback)(void);

    memcpy(&callback, &arg, sizeof callback);
    callback();
    sem_post(&back);
    pthread_mutex_lock(&leaving);
    pthread_mutex_unlock(&leaving);
    return NULL;
}

static void visit(void (*callback)(void))
{
    void *arg;

    memcpy(&arg, &callback, sizeof arg);
    if (visitor_count < VISITORS_MAX &&
        pthread_create(&visitors[visitor_count], NULL, be_visitor, arg) == 0)
        visitor_count++;
}

static void gone(void)
{
    for (; back_count < visitor_count; back_count++)
        while (sem_wait(&back) != 0)
            continue;
}

/* ---- resources of the process ---- */

static long rss_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = -1;

    if (f) {
        if (fscanf(f, "%*d %ld", &pages) != 1)
            pages = -1;
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int count_maps(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    int c, n = 0;

    if (!f)
        return -1;
    while ((c = getc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

static int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* The number of thread-specific keys in use: all that the process cannot make. */
static int count_keys(void)
{
    pthread_key_t free_keys[PTHREAD_KEYS_MAX];
    int n = 0;

    while (n < PTHREAD_KEYS_MAX && pthread_key_create(&free_keys[n], NULL) == 0)
        n++;
    for (int i = 0; i < n; i++)
        pthread_key_delete(free_keys[i]);
    return PTHREAD_KEYS_MAX - n;
}

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    fprintf(stderr, "held: %s: %s\n", finding->file, finding->message);
    return 0;
}

static void print_proof(int index, const struct pyrt_result *r)
{
    if (r->proven)
        printf("proof %d modules %zu references %zu leaks %zu\n", index, r->proof.modules,
               r->proof.references, r->proof.leaks);
    else
        fprintf(stderr, "cycle %d: no proof: %s\n", index, r->error.message);
    if (r->findings)
        fputs(r->findings, stderr);
}

static int cycle(int index, const struct pyrt_install *python, const struct pyrt_program *program,
                 const char *base)
{
    char dir[PATH_MAX];
    struct pyrt_opts o = {
        .python = python, .program = program, .dir = dir, .index = index, .count = 1};
    struct pyrt_context *c;
    struct pyrt_result result;
    struct exti_error err = {0};
    size_t left;

    /* A context gets the directory and name of one that was unloaded, but not of one that is
     * kept. */
    snprintf(dir, sizeof dir, "%s/%d", base, held);
    o.prove = program->kind == PYRT_SCRIPT;
    if (pyrt_start(&c, &o, &err) != 0) {
        fprintf(stderr, "cycle %d: %s\n", index, err.message);
        return 1;
    }
    pyrt_join(c, &result);
    if (!result.started)
        fprintf(stderr, "cycle %d: %s: %s\n", index, result.error.file, result.error.message);
    else if (o.prove)
        print_proof(index, &result);
    left = pyrt_close(c, print_finding, NULL);
    held += left != 0;
    printf("cycle %d status %d left %zu rss %ld maps %d fds %d keys %d\n", index, result.status,
           left, rss_kb(), count_maps(), count_fds(), count_keys());
    fflush(stdout);
    return !result.started;
}

int main(int argc, char **argv)
{
    struct pyrt_program program = {.kind = PYRT_CODE};
    struct pyrt_install python = {0};
    struct pyrt_scratch *scratch;
    struct exti_error err = {0};
    char address[32];
    int at = 1, rc = 0;

    if (argc > 1 && strcmp(argv[1], "--no-heap") == 0) {
        heap = 0;
        at++;
    } else if (argc > 1 && strcmp(argv[1], "--script") == 0) {
        program.kind = PYRT_SCRIPT;
        at++;
    }
    if (argc - at < 3 || pyrt_install_find(&python, argv[at + 1], &err) != 0 ||
        pyrt_scratch_new(&scratch, &err) != 0) {
        fprintf(stderr, "cycle: %s\n", err.message);
        return 2;
    }
    program.argc = argc - at - 3;
    program.argv = argv + at + 3;
    /* Copies: setproctitle writes over the arguments of this process. */
    for (int i = at + 2; i < argc; i++)
        argv[i] = strdup(argv[i]);
    program.what = argv[at + 2];
    snprintf(address, sizeof address, "%lu", (unsigned long)(uintptr_t)visit);
    setenv("VISIT", address, 1);
    snprintf(address, sizeof address, "%lu", (unsigned long)(uintptr_t)gone);
    setenv("GONE", address, 1);
    sem_init(&back, 0, 0);
    pthread_mutex_lock(&leaving);
    pyrt_process_setup(2);
    for (int i = 0; i < atoi(argv[at]) && rc == 0; i++)
        rc = cycle(i, &python, &program, pyrt_scratch_path(scratch));
    /* Visitors that are not blocked in a context end here, long after the context was closed. */
    pthread_mutex_unlock(&leaving);
    for (int i = 0; i < visitor_count && !getenv("STAY"); i++)
        pthread_join(visitors[i], NULL);
    pyrt_scratch_free(scratch);
    pyrt_install_free(&python);
    if (!held)
        return rc;
    /* exit() would run finalisers of libraries that threads of contexts still use: OpenBLAS frees
     * the memory in which a product is being computed. */
    fflush(NULL);
    _exit(rc);
}
