/* Does what dyld does in Loader::findAndRunAllInitializers. */
#include "loader/process/constructors.h"

#include "macho/macho_format.h"

struct ProgramVars;

typedef void (*initialiser)(int argc, char **argv, char **envp, char **apple,
                            const struct ProgramVars *vars);

/* What initialisers are told of the process. */
static struct {
    int argc;
    char **argv, **envp, **apple;
    const struct ProgramVars *vars;
} process;

/* dyld calls initialisers with these. */
__attribute__((constructor)) static void
keep_arguments(int argc, char **argv, char **envp, char **apple, const struct ProgramVars *vars)
{
    process.argc = argc;
    process.argv = argv;
    process.envp = envp;
    process.apple = apple;
    process.vars = vars;
}

static void each_function(const struct exti_loaded *lib,
                          int (*each)(void *user, const struct exti_macho_function *f), void *user)
{
    const struct exti_layout at = exti__loaded_layout(lib);

    exti__macho_functions(exti__span((const void *)lib->base, at.hi - at.lo), each, user);
}

static int is_unheld(void *user, const struct exti_macho_function *f)
{
    *(bool *)user = !f->is_withheld;
    return !f->is_withheld;
}

bool exti__has_unheld_constructors(const struct exti_loaded *lib)
{
    bool has = false;

    each_function(lib, is_unheld, &has);
    return has;
}

/* ---- terminators ---- */

/* Of the C library: calls `f` at exit, or when the image that it lies in is unloaded
 * (__cxa_finalize_ranges), the last registered first. */
int __cxa_atexit(void (*f)(void *), void *argument, void *dso);

struct terminators {
    const struct exti_loaded *lib;
    size_t wanted, seen;
};

static int register_wanted(void *user, const struct exti_macho_function *f)
{
    struct terminators *t = user;
    union {
        uintptr_t address;
        void (*function)(void *);
    } u = {f->address};

    if (!f->is_withheld || !f->is_terminator)
        return 0;
    if (t->seen++ == t->wanted)
        __cxa_atexit(u.function, NULL, (void *)t->lib->base);
    return t->seen > t->wanted;
}

static int count_terminator(void *user, const struct exti_macho_function *f)
{
    struct terminators *t = user;

    t->wanted += f->is_withheld && f->is_terminator;
    return 0;
}

/* dyld runs terminators after all that the image has registered for its end.  So they are
 * registered before its initialisers run, the last first. */
static void register_terminators(const struct exti_loaded *lib)
{
    struct terminators t = {.lib = lib};

    each_function(lib, count_terminator, &t);
    while (t.wanted--) {
        t.seen = 0;
        each_function(lib, register_wanted, &t);
    }
}

/* ---- initialisers ---- */

static int run_initialiser(void *user, const struct exti_macho_function *f)
{
    union {
        uintptr_t address;
        initialiser function;
    } u = {f->address};

    (void)user;
    if (f->is_withheld && !f->is_terminator)
        u.function(process.argc, process.argv, process.envp, process.apple, process.vars);
    return 0;
}

/* What tells that they have run would have to be written into pages that are signed. */
bool exti__constructors_have_run(const struct exti_loaded *lib)
{
    return exti__has_unheld_constructors(lib);
}

void exti__constructors_take(const struct exti_loaded *lib, const struct exti_layout *layout,
                             struct exti_constructors *out)
{
    (void)layout;
    out->lib = *lib;
}

void exti__constructors_run(const struct exti_constructors *c)
{
    register_terminators(&c->lib);
    each_function(&c->lib, run_initialiser, NULL);
}

/* Terminators are withheld, too, and only exti__constructors_run registers them. */
bool exti__destructors_drop(const struct exti_loaded *lib, const struct exti_layout *layout)
{
    (void)lib, (void)layout;
    return true;
}
