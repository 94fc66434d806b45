/* Constructors and destructors of copies whose constructors are withheld from the system's loader
 * (EXTI_RW_WITHHOLD).  On Windows the system's loader runs them: LoadLibrary calls DllMain before
 * it returns. */
#ifndef LOADER_PROCESS_CONSTRUCTORS_H
#define LOADER_PROCESS_CONSTRUCTORS_H

#include <stdbool.h>

#include "loader/process/linkmap.h"

#ifndef _WIN32

/* Whether the system's loader runs constructors of the library, because they are not withheld. */
bool exti__has_unheld_constructors(const struct exti_loaded *lib);

/* Whether the library's constructors have run: by the system's loader, or taken. */
bool exti__constructors_have_run(const struct exti_loaded *lib);

/* The withheld constructors of a library. */
struct exti_constructors {
#ifdef __APPLE__
    struct exti_loaded lib; /* its sections tell them */
#else
    uintptr_t first;       /* DT_INIT; 0: none */
    const uintptr_t *list; /* DT_INIT_ARRAY */
    size_t count;
#endif
};

/* Takes the withheld constructors out of the mapped library.  On ELF systems they can be taken once
 * for as long as it stays mapped, which may be longer than the module that it belongs to.  One
 * thread at a time, while no slots of the library are written. */
void exti__constructors_take(const struct exti_loaded *lib, const struct exti_layout *layout,
                             struct exti_constructors *out);

/* Runs them, in the order and with the arguments that the system's loader would. */
void exti__constructors_run(const struct exti_constructors *c);

/* Makes the system's loader run no destructors when it unloads the library: for one whose
 * constructors have not run.  False if the system refuses to make the dynamic section writable. */
bool exti__destructors_drop(const struct exti_loaded *lib, const struct exti_layout *layout);

#else

static inline bool exti__has_unheld_constructors(const struct exti_loaded *lib)
{
    (void)lib;
    return false;
}
static inline bool exti__constructors_have_run(const struct exti_loaded *lib)
{
    (void)lib;
    return true;
}

struct exti_constructors {
    char none;
};

static inline void exti__constructors_take(const struct exti_loaded *lib,
                                           const struct exti_layout *layout,
                                           struct exti_constructors *out)
{
    (void)lib, (void)layout, (void)out;
}
static inline void exti__constructors_run(const struct exti_constructors *c)
{
    (void)c;
}
static inline bool exti__destructors_drop(const struct exti_loaded *lib,
                                          const struct exti_layout *layout)
{
    (void)lib, (void)layout;
    return true;
}

#endif
#endif
