/* Hazards that show in a file itself: in its flags, its imports, and the libraries it needs. */
#include "loader/image/hazards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opts.h"
#include "base/text.h"

/* How each kind is reported. */
static const struct kind {
    const char *name;
    enum exti_outcome outcome;
    const char *advice;
} kinds[] = {
    [EXTI_HAZARD_UNIQUE] = {"unique-symbols", EXTI_OUTCOME_COPY,
                            "a process has one of each, but every copy gets its own"},
    [EXTI_HAZARD_NODELETE] = {"nodelete", EXTI_OUTCOME_COPY,
                              "asks to stay in memory, but copies do not; if it leaves hooks in "
                              "other libraries, do not unload its context (EXTI_CTX_KEEP)"},
    [EXTI_HAZARD_HOST_API] = {"host-api", EXTI_OUTCOME_LOAD,
                              "copies would bind to this program's API; when they are loaded into "
                              "it, their API symbols get private names"},
    [EXTI_HAZARD_STATIC_TLS] =
        {"static-tls", EXTI_OUTCOME_LIMIT,
         "each copy takes that much of a block whose size is fixed when the process starts; "
         "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=N makes room for N bytes of copies"},
    [EXTI_HAZARD_THREAD_KEYS] = {"thread-keys", EXTI_OUTCOME_LIMIT,
                                 "a process has few keys (glibc 1024, macOS 512, Windows 1088), "
                                 "and each copy holds its own until its context is closed; ELF "
                                 "copies that this library loads have 65536 besides"},
    [EXTI_HAZARD_THREADS] = {"threads", EXTI_OUTCOME_UNLOAD,
                             "end them before the context is closed: ELF copies stay in memory "
                             "while one runs, other copies are unmapped under it"},
    [EXTI_HAZARD_DESTRUCTORS] = {"destructors", EXTI_OUTCOME_UNLOAD,
                                 "run when the copy is unloaded, on the thread that closes the "
                                 "context, after the interpreter has ended"},
    [EXTI_HAZARD_EXIT] = {"exit-handlers", EXTI_OUTCOME_UNLOAD,
                          "run when the process ends, after an unloaded copy is gone: do not "
                          "unload the context (EXTI_CTX_KEEP)"},
    [EXTI_HAZARD_THREAD_EXIT] = {"thread-exit", EXTI_OUTCOME_UNLOAD,
                                 "has destructors of thread-locals: the copy stays in memory until "
                                 "all threads with such a thread-local have ended"},
    [EXTI_HAZARD_SIGNALS] = {"signals", EXTI_OUTCOME_SHARED,
                             "the last handler or timer that any context sets is the process's; "
                             "`extisolate run' lets no context set one, other hosts can redirect "
                             "the call (struct exti_redirect)"},
    [EXTI_HAZARD_FORK] = {"fork", EXTI_OUTCOME_SHARED,
                          "a child has only the forking thread, which may continue in its context "
                          "or exec, but must enter no other context; fork handlers run for their "
                          "own context only"},
    [EXTI_HAZARD_DIRECTORY] = {"directory", EXTI_OUTCOME_SHARED,
                               "threads that are not a context's own share the current "
                               "directory: use absolute paths"},
    [EXTI_HAZARD_UMASK] = {"umask", EXTI_OUTCOME_SHARED,
                           "threads that are not a context's own share the mode of new files: set "
                           "it before the first context is opened"},
    [EXTI_HAZARD_ENVIRONMENT] = {"environment", EXTI_OUTCOME_SHARED,
                                 "all contexts have the same variables, and setting one while "
                                 "another thread reads it is a race: set them before the first "
                                 "context is opened"},
    [EXTI_HAZARD_LOCALE] = {"locale", EXTI_OUTCOME_SHARED,
                            "the C locale is one for all contexts: set it before the first is "
                            "opened"},
    [EXTI_HAZARD_END] = {"end", EXTI_OUTCOME_SHARED, "ends the process with all its contexts"},
    [EXTI_HAZARD_OPENMP] = {"openmp", EXTI_OUTCOME_SHARED,
                            "each context's threads form a team of one per processor: set "
                            "OMP_NUM_THREADS to the processors / the contexts, as `extisolate run' "
                            "does"},
    [EXTI_HAZARD_BLAS] = {"blas", EXTI_OUTCOME_SHARED,
                          "each copy starts one thread per processor, and a shared original serves "
                          "one context at a time: set OPENBLAS_NUM_THREADS to the processors / the "
                          "contexts, as `extisolate run' does"},
    [EXTI_HAZARD_RECORD_LOCKS] = {"record-locks", EXTI_OUTCOME_LOAD,
                                  "may lock parts of files for the process; what copies lock once "
                                  "this library has loaded them is locked for their context"},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* The formats in which a function of that name has the table's meaning. */
#define ELF 1u
#define MACHO 2u
#define PE 4u
#define ALL (ELF | MACHO | PE)

/* In strcmp order.  Functions that do no harm beyond the copy are left out: posix_spawn and
 * vfork, which lead to an exec; sigprocmask, which changes the calling thread only; and abort,
 * which every C++ and Rust library imports. So are the names that a program's start-up code has
 * in PE files. */
static const struct call {
    const char *name;
    enum exti_hazard kind;
    uint32_t formats;
} calls[] = {
    {"AddVectoredExceptionHandler", EXTI_HAZARD_SIGNALS, PE},
    {"CreateThread", EXTI_HAZARD_THREADS, PE},
    {"ExitProcess", EXTI_HAZARD_END, PE},
    {"FlsAlloc", EXTI_HAZARD_THREAD_KEYS, PE},
    {"SetConsoleCtrlHandler", EXTI_HAZARD_SIGNALS, PE},
    {"SetCurrentDirectoryA", EXTI_HAZARD_DIRECTORY, PE},
    {"SetCurrentDirectoryW", EXTI_HAZARD_DIRECTORY, PE},
    {"SetEnvironmentVariableA", EXTI_HAZARD_ENVIRONMENT, PE},
    {"SetEnvironmentVariableW", EXTI_HAZARD_ENVIRONMENT, PE},
    {"TlsAlloc", EXTI_HAZARD_THREAD_KEYS, PE},
    {"_Exit", EXTI_HAZARD_END, ELF | MACHO},
    {"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
     EXTI_HAZARD_THREADS, ALL},
    {"__cxa_at_quick_exit", EXTI_HAZARD_EXIT, ELF},
    {"__cxa_atexit", EXTI_HAZARD_DESTRUCTORS, ELF | MACHO},
    {"__cxa_thread_atexit", EXTI_HAZARD_THREAD_EXIT, ELF},
    {"__cxa_thread_atexit_impl", EXTI_HAZARD_THREAD_EXIT, ELF},
    {"__register_atfork", EXTI_HAZARD_FORK, ELF},
    {"__sysv_signal", EXTI_HAZARD_SIGNALS, ELF},
    {"_beginthread", EXTI_HAZARD_THREADS, PE},
    {"_beginthreadex", EXTI_HAZARD_THREADS, PE},
    {"_chdir", EXTI_HAZARD_DIRECTORY, PE},
    {"_exit", EXTI_HAZARD_END, ALL},
    {"_putenv", EXTI_HAZARD_ENVIRONMENT, PE},
    {"_putenv_s", EXTI_HAZARD_ENVIRONMENT, PE},
    {"_tlv_atexit", EXTI_HAZARD_THREAD_EXIT, MACHO},
    {"_umask", EXTI_HAZARD_UMASK, PE},
    {"_wchdir", EXTI_HAZARD_DIRECTORY, PE},
    {"_wputenv", EXTI_HAZARD_ENVIRONMENT, PE},
    {"_wputenv_s", EXTI_HAZARD_ENVIRONMENT, PE},
    {"_wsetlocale", EXTI_HAZARD_LOCALE, PE},
    {"alarm", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"at_quick_exit", EXTI_HAZARD_EXIT, ELF | MACHO},
    {"atexit", EXTI_HAZARD_DESTRUCTORS, ELF | MACHO},
    {"bsd_signal", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"chdir", EXTI_HAZARD_DIRECTORY, ELF | MACHO},
    {"chroot", EXTI_HAZARD_DIRECTORY, ELF | MACHO},
    {"clearenv", EXTI_HAZARD_ENVIRONMENT, ELF},
    {"daemon", EXTI_HAZARD_FORK, ELF | MACHO},
    {"exit", EXTI_HAZARD_END, ALL},
    {"fchdir", EXTI_HAZARD_DIRECTORY, ELF | MACHO},
    {"fcntl", EXTI_HAZARD_RECORD_LOCKS, ELF},
    {"fcntl64", EXTI_HAZARD_RECORD_LOCKS, ELF},
    {"fork", EXTI_HAZARD_FORK, ELF | MACHO},
    {"forkpty", EXTI_HAZARD_FORK, ELF | MACHO},
    {"lockf", EXTI_HAZARD_RECORD_LOCKS, ELF},
    {"lockf64", EXTI_HAZARD_RECORD_LOCKS, ELF},
    {"on_exit", EXTI_HAZARD_EXIT, ELF},
    {"pthread_atfork", EXTI_HAZARD_FORK, ELF | MACHO},
    {"pthread_create", EXTI_HAZARD_THREADS, ALL},
    {"pthread_key_create", EXTI_HAZARD_THREAD_KEYS, ALL},
    {"putenv", EXTI_HAZARD_ENVIRONMENT, ALL},
    {"quick_exit", EXTI_HAZARD_END, ALL},
    {"setenv", EXTI_HAZARD_ENVIRONMENT, ELF | MACHO},
    {"setitimer", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"setlocale", EXTI_HAZARD_LOCALE, ALL},
    {"sigaction", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"siginterrupt", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"signal", EXTI_HAZARD_SIGNALS, ALL},
    {"sigset", EXTI_HAZARD_SIGNALS, ELF | MACHO},
    {"thrd_create", EXTI_HAZARD_THREADS, ALL},
    {"tss_create", EXTI_HAZARD_THREAD_KEYS, ALL},
    {"umask", EXTI_HAZARD_UMASK, ELF | MACHO},
    {"unsetenv", EXTI_HAZARD_ENVIRONMENT, ELF | MACHO},
};
#define CALLS (sizeof calls / sizeof *calls)
_Static_assert(CALLS <= 128, "struct exti_image_hazards has a bit for each");

static uint32_t format_of(const struct exti_image *im)
{
    return im->format == EXTI_FORMAT_ELF ? ELF : im->format == EXTI_FORMAT_PE ? PE : MACHO;
}

/* ---- finding hazards ---- */

/* strcmp of the first `n` characters of `name`. */
static int compare_prefix(const char *name, size_t n, const char *with)
{
    int order = strncmp(name, with, n);

    return order ? order : -(with[n] != 0);
}

static void find_call(struct exti_image *im, uint32_t format, const char *name)
{
    /* Mach-O appends $UNIX2003 and the like. */
    size_t n = format == MACHO ? strcspn(name, "$") : strlen(name), lo = 0, hi = CALLS;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = compare_prefix(name, n, calls[mid].name);

        if (order == 0) {
            if (calls[mid].formats & format)
                im->hazards.calls[mid / 64] |= (uint64_t)1 << mid % 64;
            return;
        }
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
}

static bool starts_with_any(const char *text, const char *const *names)
{
    while (*names && !exti__starts_with(text, *names))
        names++;
    return *names != NULL;
}

/* A function of an OpenMP runtime library. */
static bool is_openmp(const char *symbol)
{
    static const char *const names[] = {"GOMP_", "__kmpc_", "omp_get_", "omp_set_", NULL};

    return starts_with_any(symbol, names);
}

static bool needs_openmp(const char *library)
{
    static const char *const names[] = {"libgomp", "libomp.", "libiomp5", "vcomp", NULL};

    return starts_with_any(library, names);
}

static bool needs_blas(const char *library)
{
    static const char *const names[] = {
        "libopenblas", "libscipy_openblas", "libblas", "libcblas", "liblapack",
        "libmkl_",     "libblis",           "mkl_",    "openblas", NULL};

    return starts_with_any(library, names);
}

/* A function of a BLAS library that sets its number of threads; numpy's and scipy's have a
 * prefix and maybe a suffix. */
static bool is_blas(const char *symbol)
{
    static const char *const names[] = {
        "openblas_set_num_threads", "scipy_openblas_set_num_threads", "mkl_set_num_threads",
        "MKL_Set_Num_Threads",      "bli_thread_set_num_threads",     NULL};

    return starts_with_any(symbol, names);
}

static void find_in_symbol(struct exti_image *im, uint32_t format,
                           const struct exti_image_symbol *s)
{
    const char *name = s->name + (format == MACHO && *s->name == '_');
    bool exported = (s->flags & EXTI_SYM_EXPORT) != 0;

    if (s->flags & EXTI_SYM_UNIQUE || (format == MACHO && exported && s->flags & EXTI_SYM_WEAK)) {
        im->hazards.unique++;
        if (!im->hazards.unique_one)
            im->hazards.unique_one = s->name;
    }
    if (!exported)
        find_call(im, format, name);
    else if ((im->info.flags & EXTI_IMAGE_INTERP) && exti__starts_with(name + (*name == '_'), "Py"))
        im->hazards.api++;
    if (!im->hazards.openmp && is_openmp(name))
        im->hazards.openmp = s->name;
    if (!im->hazards.blas && exported && is_blas(name))
        im->hazards.blas = s->name;
}

void exti__hazards_find(struct exti_image *im)
{
    uint32_t format = format_of(im);

    im->hazards = (struct exti_image_hazards){0};
    for (size_t i = 0; i < im->info.needed_count; i++) {
        /* A slash on every host: the file's system is not the one that reads it. */
        const char *slash = strrchr(im->needed[i].name, '/');
        const char *name = slash ? slash + 1 : im->needed[i].name;

        if (!im->hazards.openmp && needs_openmp(name))
            im->hazards.openmp = name;
        if (!im->hazards.blas && needs_blas(name))
            im->hazards.blas = name;
    }
    for (size_t i = 0; i < im->info.symbol_count; i++)
        find_in_symbol(im, format, &im->symbols[i]);
}

/* ---- reporting hazards ---- */

/* Appends a name, or ", ..." if it does not fit. */
static void add_evidence(struct exti_hazard_info *h, const char *name)
{
    static const char more[] = ", ...";
    size_t n = strlen(h->evidence), len = strlen(name), room = sizeof h->evidence - n - sizeof more;

    if (n >= sizeof more - 1 && strcmp(h->evidence + n - (sizeof more - 1), more) == 0)
        return;
    if (len + 2 <= room)
        snprintf(h->evidence + n, sizeof h->evidence - n, "%s%s", n > 0 ? ", " : "", name);
    else /* a first name is cut rather than left out */
        snprintf(h->evidence + n, sizeof h->evidence - n, "%.*s%s", n > 0 ? 0 : (int)room, name,
                 more);
}

static void add_calls(const struct exti_image *im, struct exti_hazard_info *h)
{
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].kind == h->kind && (im->hazards.calls[i / 64] >> i % 64 & 1)) {
            h->count++;
            add_evidence(h, calls[i].name);
        }
}

static void set_count(struct exti_hazard_info *h, uint64_t count, const char *evidence)
{
    h->count = count;
    if (count > 0)
        add_evidence(h, evidence);
}

uint64_t exti__static_tls(const struct exti_image *im)
{
    uint64_t align = im->info.tls_align ? im->info.tls_align : 1, size = im->info.tls_size;

    /* Without thread-locals of its own, the file uses another library's. */
    if (!(im->info.flags & EXTI_IMAGE_STATIC_TLS) || size == 0)
        return 0;
    return size > UINT64_MAX - (align - 1) ? UINT64_MAX : (size + align - 1) / align * align;
}

/* glibc: TCB_ALIGNMENT is 64 on x86.  Elsewhere it is less, but struct pthread holds a struct rseq,
 * which is aligned to 32 (since 2.35; measured on arm64). */
uint64_t exti__static_tls_align(const struct exti_image *im)
{
    const char *machine = im->info.machine;

    return strcmp(machine, "x86-64") == 0 || strcmp(machine, "i386") == 0 ? 64 : 32;
}

#define TOO_ALIGNED(bytes)                                                                         \
    "has thread-locals aligned to more than " bytes                                                \
    " bytes, for which ld.so makes room only when the program itself needs the library: dlopen "   \
    "and contexts cannot load it"

/* Elsewhere than on x86, descriptors are the compilers' default.  ld.so puts their variables into
 * the block, too, as long as the optional part has room. */
static uint64_t static_tls_room(const struct exti_image *im)
{
    return EXTI_STATIC_TLS_ROOM - (exti__static_tls_align(im) == 64 ? 0 : 512);
}

static void report_static_tls(const struct exti_image *im, struct exti_hazard_info *h)
{
    uint64_t most;

    set_count(h, exti__static_tls(im), im->static_tls);
    if (!h->count)
        return;
    most = exti__static_tls_align(im);
    h->most = im->info.tls_align > most ? 0 : static_tls_room(im) / h->count;
    if (im->info.tls_align > most)
        h->advice = most == 64 ? TOO_ALIGNED("64") : TOO_ALIGNED("32");
}

/* gABI "Initialization and Termination Functions".  One of the entries is the compiler's
 * start-up code, which calls __cxa_finalize. */
static void report_destructors(const struct exti_image *im, struct exti_hazard_info *h)
{
    size_t own = im->finalisers;

    add_calls(im, h);
    for (size_t i = 0; own > 0 && i < im->info.symbol_count; i++)
        if (!(im->symbols[i].flags & EXTI_SYM_EXPORT) &&
            strcmp(im->symbols[i].name, "__cxa_finalize") == 0) {
            own--;
            break;
        }
    if (own > 0)
        add_evidence(h, "DT_FINI_ARRAY");
    h->count += own;
}

/* dyld decides whether a Mach-O file can be unloaded; a copy cannot change that. */
static void report_nodelete(const struct exti_image *im, struct exti_hazard_info *h)
{
    bool macho = format_of(im) == MACHO;

    set_count(h, (im->info.flags & EXTI_IMAGE_NODELETE) != 0,
              macho ? "thread-locals, Objective-C or Swift" : "DF_1_NODELETE");
    if (macho) {
        h->outcome = EXTI_OUTCOME_UNLOAD;
        h->advice = "stays in memory once loaded, as do its copies";
    }
}

/* The flag alone counts for Mach-O: a file may bind to weak definitions without having any. */
static void report_unique(const struct exti_image *im, struct exti_hazard_info *h)
{
    if (!(im->info.flags & EXTI_IMAGE_UNIQUE))
        return;
    if (im->hazards.unique > 0)
        set_count(h, im->hazards.unique, im->hazards.unique_one);
    else
        set_count(h, 1, "MH_BINDS_TO_WEAK");
}

/* The hazard of that kind; its count is 0 if the file does not have it. */
static struct exti_hazard_info hazard_of(const struct exti_image *im, enum exti_hazard kind)
{
    struct exti_hazard_info h = {sizeof h,           kind, kinds[kind].outcome, kinds[kind].name,
                                 kinds[kind].advice, 0,    EXTI_NO_LIMIT,       ""};

    switch (kind) {
    case EXTI_HAZARD_UNIQUE:
        report_unique(im, &h);
        break;
    case EXTI_HAZARD_NODELETE:
        report_nodelete(im, &h);
        break;
    case EXTI_HAZARD_HOST_API:
        set_count(&h, im->hazards.api, "Py*");
        break;
    case EXTI_HAZARD_STATIC_TLS:
        report_static_tls(im, &h);
        break;
    case EXTI_HAZARD_DESTRUCTORS:
        report_destructors(im, &h);
        break;
    case EXTI_HAZARD_OPENMP:
        set_count(&h, im->hazards.openmp != NULL, im->hazards.openmp);
        break;
    case EXTI_HAZARD_BLAS:
        set_count(&h, im->hazards.blas != NULL, im->hazards.blas);
        break;
    default:
        add_calls(im, &h);
    }
    return h;
}

int exti_image_hazard(const struct exti_image *im, size_t i, struct exti_hazard_info *out)
{
    if (!im)
        return EXTI_E_ARG;
    for (size_t k = 0; k < KINDS; k++) {
        struct exti_hazard_info h = hazard_of(im, (enum exti_hazard)k);

        if (h.count > 0 && i-- == 0)
            return exti__opts_give(out, &h, sizeof h);
    }
    return EXTI_E_ARG;
}
