/* Runs a script in as many CPythons, each with all of its libraries in a namespace of dlmopen(3).
 *
 *   dlmopen LIBPYTHON SCRIPT COPIES AT_ONCE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static const char *libpython, *script;
static sem_t turns;

static void *symbol(void *library, const char *name)
{
    void *p = dlsym(library, name);

    if (!p) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return p;
}

static void *run(void *unused)
{
    void *library;
    void (*initialise)(void);
    int (*run_string)(const char *), (*finalise)(void);
    char *source = NULL;

    sem_wait(&turns);
    library = dlmopen(LM_ID_NEWLM, libpython, RTLD_NOW);
    if (!library || asprintf(&source, "exec(open('%s').read())", script) < 0) {
        fprintf(stderr, "%s\n", library ? "out of memory" : dlerror());
        exit(1);
    }
    *(void **)&initialise = symbol(library, "Py_Initialize");
    *(void **)&run_string = symbol(library, "PyRun_SimpleString");
    *(void **)&finalise = symbol(library, "Py_FinalizeEx");
    initialise();
    if (run_string(source) || finalise())
        exit(1);
    free(source);
    sem_post(&turns);
    return unused;
}

int main(int argc, char **argv)
{
    const int copies = argc == 5 ? atoi(argv[3]) : 0;
    pthread_t *threads = calloc((size_t)copies + 1, sizeof *threads);

    if (copies < 1 || !threads)
        return 2;
    libpython = argv[1];
    script = argv[2];
    sem_init(&turns, 0, (unsigned)atoi(argv[4]));
    for (int i = 0; i < copies; i++)
        if (pthread_create(&threads[i], NULL, run, NULL))
            return 1;
    for (int i = 0; i < copies; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
