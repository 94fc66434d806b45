#include "tests/support/lief.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<LIEF/ELF.h>)
#include <LIEF/ELF.h>

static Elf_Binary_t *(*parse)(const char *);

int lief_found(void)
{
    void *lib = parse ? NULL : dlopen("libLIEF.so.0", RTLD_NOW | RTLD_LOCAL);

    if (lib)
        *(void **)&parse = dlsym(lib, "elf_parse");
    return parse != NULL;
}

/* "id NAME" and "needed NAME" lines; in a process of its own, which LIEF may crash. */
static void print_facts(const char *path, FILE *f)
{
    Elf_Binary_t *b = parse(path);

    if (!b || !b->dynamic_entries)
        _exit(1);
    for (size_t i = 0; b->dynamic_entries[i]; i++) {
        const Elf_DynamicEntry_t *e = b->dynamic_entries[i];

        /* Only these are of the longer type that has a name. */
        if (e->tag == LIEF_ELF_DT_SONAME || e->tag == LIEF_ELF_DT_NEEDED)
            fprintf(f, "%s %s\n", e->tag == LIEF_ELF_DT_SONAME ? "id" : "needed",
                    ((const struct Elf_DynamicEntry_Library_t *)e)->name);
    }
    fflush(f);
    _exit(0);
}
#else
int lief_found(void)
{
    return 0;
}

static void print_facts(const char *path, FILE *f)
{
    (void)path;
    (void)f;
    _exit(1);
}
#endif

static void take_facts(FILE *f, char *id, size_t id_cap, char *needed, size_t needed_cap)
{
    char line[4096];
    size_t n = 0;

    id[0] = needed[0] = 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "needed ", 7) == 0 && n < needed_cap)
            n += (size_t)snprintf(needed + n, needed_cap - n, "%s", line + 7);
        else if (strncmp(line, "id ", 3) == 0)
            snprintf(id, id_cap, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    }
}

int lief_read(const char *path, char *id, size_t id_cap, char *needed, size_t needed_cap)
{
    int ends[2], status = 1;
    pid_t child;
    FILE *f;

    if (!lief_found() || pipe(ends))
        return 0;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        print_facts(path, fdopen(ends[1], "w"));
    }
    close(ends[1]);
    f = fdopen(ends[0], "r");
    if (f) {
        take_facts(f, id, id_cap, needed, needed_cap);
        fclose(f);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
