/*
 * extisolate.h - private copies of native extension modules, one set per interpreter context.
 *
 * This is the whole public interface and the only installed header.  Names: exti_ / EXTI_.
 *
 * Errors.  Every call that can fail returns 0 or a negative enum exti_code and takes, last, a
 * caller-owned struct exti_error (NULL if the details are not wanted).  On failure no output
 * argument is written; on success the error is not touched.  The library never prints, exits or
 * aborts.
 *
 * Option structs.  Zero-fill, then set .size = sizeof.  A longer struct from a newer caller is
 * accepted when its unknown tail is zero, so an old library refuses what it would ignore.
 *
 * Strings that go in are borrowed for the call, unless a member says otherwise.  Strings that come
 * out live as long as the object they were asked from.  Paths are UTF-8 on Windows, of any length and
 * with either slash.
 */
#ifndef EXTISOLATE_H
#define EXTISOLATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The Makefile reads these three lines. */
#define EXTI_VERSION_MAJOR 0
#define EXTI_VERSION_MINOR 1
#define EXTI_VERSION_PATCH 0

#ifndef EXTI_API
#define EXTI_API
#endif

/* ---- errors ------------------------------------------------------------------------------- */

/* Values are ABI: append only, never renumber. */
enum exti_code {
    EXTI_OK = 0,
    EXTI_E_ARG = -1, /* the call was wrong: a NULL, a bad option, a bad name */
    EXTI_E_NOMEM = -2,
    EXTI_E_IO = -3,          /* the system refused: see os_error */
    EXTI_E_FORMAT = -4,      /* the file is malformed: see offset */
    EXTI_E_UNSUPPORTED = -5, /* the file is well formed but this edit cannot be done safely */
    EXTI_E_NOSPACE = -6,     /* the file has no room for the edit */
    EXTI_E_LOAD = -7,        /* the system's loader refused the copy: its words are in message */
    EXTI_E_NOSYM = -8,       /* no such symbol in the module */
    EXTI_E_HOOK = -9,        /* a hook returned a negative value */
    EXTI_E_INTERPOSED = -10, /* a symbol from outside the context captured a reference */
    EXTI_E_CHECK = -11,      /* a copy is not what its source and edits make it */
    EXTI_E_BUSY = -12        /* the context directory is already loaded in this process */
};

#define EXTI_NO_OFFSET UINT64_MAX

/* Caller-owned, no heap.  A path or message that does not fit keeps its tail, respectively head. */
struct exti_error {
    int code;          /* enum exti_code */
    int os_error;      /* errno, on Windows the one that means the same; else 0 */
    uint64_t offset;   /* absolute file offset of the fault, or EXTI_NO_OFFSET */
    char file[512];    /* the file at fault, or "" */
    char message[512]; /* what is wrong, where and what would be right; no trailing newline */
};

/* "EXTI_E_FORMAT" for -4; a static string, never NULL.  Any thread. */
EXTI_API const char *exti_code_name(int code);

/* The library's version, "0.1.0"; a static string.  Any thread. */
EXTI_API const char *exti_version(void);

/* Called with each finding of a check.  `finding` is valid during the call only.  A non-zero
 * return stops the check, which then returns 0 as if it had ended. */
typedef int (*exti_report_fn)(void *user, const struct exti_error *finding);

/* ---- rewriting one file --------------------------------------------------------------------- */

/* One change to the list of needed libraries (DT_NEEDED, LC_LOAD_DYLIB, import descriptors).
 *   from NULL            add `to`, at the place `where` says; nothing if it is there already
 *   to NULL              remove `from`; an error if it is not there
 *   both                 replace `from` by `to` at the same place; an error if `from` is not there
 * The order of the library list is a lookup order, so it changes only as asked. */
enum exti_needed_where { EXTI_NEEDED_LAST = 0, EXTI_NEEDED_FIRST = 1 };
struct exti_needed {
    const char *from, *to;
    enum exti_needed_where where;
};

/* One dynamic symbol's new name, whether the file defines or only refers to it. */
struct exti_rename {
    const char *from, *to;
};

/* The file's own symbols win its lookups.  ELF: DF_SYMBOLIC.  Mach-O: flat references to what the file
 * itself exports are bound to it. */
#define EXTI_RW_SYMBOLIC 1u
#define EXTI_RW_CLEAR_NODELETE 2u /* ELF: clear DF_1_NODELETE, so that the copy can be unloaded */
/* C++ symbols that are one per process become one per copy.  ELF: STB_GNU_UNIQUE becomes STB_GLOBAL.
 * Mach-O: weak definitions bind to the file's own. */
#define EXTI_RW_CLEAR_UNIQUE 4u

struct exti_rewrite_opts {
    size_t size;
    const char *id;                   /* SONAME / LC_ID_DYLIB / PE export name; NULL keeps */
    const struct exti_needed *needed; /* applied in order */
    size_t needed_count;
    const char *path_set;     /* the library search path (RUNPATH) becomes this; "" removes it;
                               * NULL keeps.  A file with DT_RPATH keeps that kind of tag. */
    const char *path_prepend; /* entries, ':'-separated, to search before the others */
    const char *origin;       /* the directory that $ORIGIN stood for: kept entries name it instead,
                               * so that they mean in the copy what they meant in the original */
    const struct exti_rename *renames; /* any order; names not in the file are passed over */
    size_t rename_count;
    uint32_t flags; /* EXTI_RW_* */
    int sync;       /* non-zero: fsync file and folder before returning */

    /* Mach-O, where a reference names the library it binds to, or none (a flat look-up, the main
     * program): those that name none are bound to the needed library `bind_name` if the file
     * `bind_file` exports the symbol.  bind_file NULL: they stay.  bind_name NULL: they are bound to
     * the copy itself.  Where the header has no room for bind_name, bind_short stands for it, if
     * given: another name by which the system's loader finds the same library.
     *
     * PE: a symbol imported from a library that becomes `bind_name` (any that is renamed, when that is
     * NULL) must be exported by `bind_file`, or the file is refused.  In PE, libraries can be renamed but
     * not added or removed, names are compared without regard to case, and the rename covers delay
     * imports and forwarders; search paths, `origin` and `flags` stand for nothing. */
    const char *bind_file, *bind_name, *bind_short;
};

/* Rewrites `src` into `dst`, which is created or replaced as a whole, or left as it was.  `src` is
 * never written.  The copy is checked against the original before it takes its name.  Same input,
 * same options: same bytes.  Any thread. */
EXTI_API int exti_rewrite(const char *src, const char *dst, const struct exti_rewrite_opts *opts,
                          struct exti_error *err);

/* ---- describing one file ---------------------------------------------------------------------- */

struct exti_image; /* read-only description of one file; any thread once made */

#define EXTI_IMAGE_NODELETE 1u   /* cannot be unloaded (DF_1_NODELETE) */
#define EXTI_IMAGE_STATIC_TLS 2u /* uses the static TLS block (DF_STATIC_TLS), a scarce resource */
#define EXTI_IMAGE_TEXTREL 4u    /* relocates its code */
#define EXTI_IMAGE_SYMBOLIC 8u   /* its own symbols win its lookups */
#define EXTI_IMAGE_BIND_NOW 16u
#define EXTI_IMAGE_UNIQUE 32u  /* has process-wide unique symbols (STB_GNU_UNIQUE) */
#define EXTI_IMAGE_INTERP 64u  /* names a program interpreter: also runs as a program */
#define EXTI_IMAGE_BUNDLE 128u /* Mach-O: MH_BUNDLE, cannot be linked against */
/* PE; copies that are edited have neither of the first two. */
#define EXTI_IMAGE_BOUND 256u           /* holds addresses of its imports, found in advance */
#define EXTI_IMAGE_FORCE_INTEGRITY 512u /* loads only with a valid signature */
#define EXTI_IMAGE_RELOCATABLE 1024u    /* loads at any address */
#define EXTI_IMAGE_NODEFLIB 2048u /* ELF: what it needs is not in default folders (DF_1_NODEFLIB) */
/* Mach-O: defines Objective-C classes or Swift types, whose names are one per process. */
#define EXTI_IMAGE_CLASSES 4096u

enum exti_signature {
    EXTI_SIGNATURE_NONE = 0,
    EXTI_SIGNATURE_LINKER = 1,  /* ad hoc, by a linker */
    EXTI_SIGNATURE_ADHOC = 2,   /* ad hoc, by codesign */
    EXTI_SIGNATURE_IDENTITY = 3 /* a certificate's; a copy loses it */
};

struct exti_image_info {
    size_t size;          /* set by the caller; members past it are not written */
    const char *format;   /* "ELF", ... */
    const char *machine;  /* "x86-64", ... */
    const char *id;       /* SONAME or the like; PE: the export directory's name; NULL if none */
    const char *rpath;    /* NULL if none */
    const char *runpath;  /* NULL if none */
    const char *build_id; /* lower-case hex; PE: the PDB's GUID and age; NULL if none */
    int bits;             /* 32 or 64 */
    int big_endian;
    uint32_t flags;    /* EXTI_IMAGE_* */
    uint64_t tls_size; /* bytes of thread-local storage a thread needs for this file */
    size_t needed_count, symbol_count;
    /* Mach-O, and some PE; elsewhere 0. */
    size_t slice_count;   /* of a universal file, see exti_image_slice */
    uint64_t header_room; /* bytes free for load commands; PE: behind the section table */
    enum exti_signature signature;
    uint32_t min_os, sdk; /* xxxx.yy.zz: 0x000b0000 is 11.0 */
    /* PE; elsewhere 0. */
    const char *unfit;     /* why no copy can be loaded beside the original; NULL: one can */
    uint64_t overlay_size; /* bytes behind the sections that belong to none, a signature left out */
    uint32_t load_flags;   /* DependentLoadFlags: the folders that its libraries may come from */
    uint64_t tls_align;    /* ELF: what the thread-local storage is aligned to; else 0 */
};

#define EXTI_SYM_EXPORT 1u /* defined here and visible; otherwise an import */
#define EXTI_SYM_WEAK 2u
#define EXTI_SYM_UNIQUE 4u
#define EXTI_SYM_TLS 8u
#define EXTI_SYM_FUNCTION 16u

#define EXTI_BIND_SELF 0    /* the file itself */
#define EXTI_BIND_MAIN (-1) /* the main program */
#define EXTI_BIND_FLAT (-2) /* whichever library has it first */
#define EXTI_BIND_WEAK (-3) /* one definition for the process */

#define EXTI_NEED_WEAK 1u     /* may be missing; PE: a delay import, loaded on first use */
#define EXTI_NEED_REEXPORT 2u /* what it exports, this file exports */
#define EXTI_NEED_UPWARD 4u   /* a dependency in a circle */

struct exti_symbol_info {
    size_t size;
    const char *name;    /* PE: "#12" for what has an ordinal alone */
    const char *version; /* NULL if none */
    uint32_t flags;      /* EXTI_SYM_* */
    /* Mach-O or PE import: the needed library it binds to, from 1; Mach-O: or EXTI_BIND_*. */
    int32_t library;
    const char *forward; /* PE: what is exported is "LIBRARY.SYMBOL" or "LIBRARY.#12"; else NULL */
    uint32_t ordinal; /* PE: the number that it is exported or imported by, if it has one; else 0 */
};

EXTI_API int exti_inspect(const char *path, struct exti_image **out, struct exti_error *err);
EXTI_API int exti_image_info(const struct exti_image *im, struct exti_image_info *out);
EXTI_API const char *exti_image_needed(const struct exti_image *im, size_t i); /* NULL past end */
EXTI_API uint32_t exti_image_needed_flags(const struct exti_image *im, size_t i); /* EXTI_NEED_* */
EXTI_API const char *exti_image_path(const struct exti_image *im, size_t i); /* Mach-O: LC_RPATHs */
/* One architecture of a universal Mach-O file; owned by `im`, which itself describes the first that can
 * be rewritten.  NULL past the end. */
EXTI_API const struct exti_image *exti_image_slice(const struct exti_image *im, size_t i);
EXTI_API int exti_image_symbol(const struct exti_image *im, size_t i, struct exti_symbol_info *out);
/* The first place in the file, from `from` on, that has `name` as text, in ASCII or UTF-16 and in any
 * case, and is not where the file tells its id, a library it needs or its search path: what it may look
 * up by that name as it runs.  EXTI_NO_OFFSET: there is none. */
EXTI_API uint64_t exti_image_mention(const struct exti_image *im, const char *name, uint64_t from);
EXTI_API void exti_image_free(struct exti_image *im); /* NULL ok */

/* ---- hazards of one file ------------------------------------------------------------------------ */

/* What a file has or calls that matters when a process has several copies of it.  Values are ABI:
 * append only. */
enum exti_hazard {
    EXTI_HAZARD_UNIQUE = 0,       /* C++ symbols of which a process has one */
    EXTI_HAZARD_NODELETE = 1,     /* is never unloaded */
    EXTI_HAZARD_HOST_API = 2,     /* a program that exports Python's API */
    EXTI_HAZARD_STATIC_TLS = 3,   /* thread-locals in a block that does not grow */
    EXTI_HAZARD_THREAD_KEYS = 4,  /* thread-specific keys, of which a process has few */
    EXTI_HAZARD_THREADS = 5,      /* starts threads */
    EXTI_HAZARD_DESTRUCTORS = 6,  /* code that runs as the file is unloaded */
    EXTI_HAZARD_EXIT = 7,         /* handlers that run at exit, unloaded or not */
    EXTI_HAZARD_THREAD_EXIT = 8,  /* destructors of thread-locals, which run as a thread ends */
    EXTI_HAZARD_SIGNALS = 9,      /* signal handlers and timers */
    EXTI_HAZARD_FORK = 10,        /* fork, handlers for it */
    EXTI_HAZARD_DIRECTORY = 11,   /* the current directory */
    EXTI_HAZARD_UMASK = 12,       /* the mode of new files */
    EXTI_HAZARD_ENVIRONMENT = 13, /* environment variables */
    EXTI_HAZARD_LOCALE = 14,      /* the C locale */
    EXTI_HAZARD_END = 15,         /* ends the process */
    EXTI_HAZARD_OPENMP = 16,      /* OpenMP's threads */
    EXTI_HAZARD_BLAS = 17         /* a BLAS library's threads */
};

enum exti_outcome {
    EXTI_OUTCOME_COPY = 0,   /* cured: a copy has it no more */
    EXTI_OUTCOME_LOAD = 1,   /* cured as copies are loaded */
    EXTI_OUTCOME_LIMIT = 2,  /* limits how many contexts a process can have */
    EXTI_OUTCOME_SHARED = 3, /* what it does, it does to all contexts */
    EXTI_OUTCOME_UNLOAD = 4  /* matters when a copy is to be unloaded */
};

/* What glibc leaves of its static TLS block, at least, to libraries that are opened at run time.  All of
 * a process share it.  Each byte of glibc.rtld.optional_static_tls above 512 adds one. */
#define EXTI_STATIC_TLS_ROOM 1664
/* "Not known": of struct exti_hazard_info.most. */
#define EXTI_NO_LIMIT UINT64_MAX

struct exti_hazard_info {
    size_t size; /* set by the caller; members past it are not written */
    enum exti_hazard kind;
    enum exti_outcome outcome;
    const char *name;   /* "static-tls", ...; a static string */
    const char *advice; /* for people: what it means, and what to do; a static string */
    uint64_t count;     /* of what shows it: symbols, bytes of static TLS that one copy takes */
    uint64_t most;      /* LIMIT: how many copies a process can have when nothing else takes of the
                         * same; EXTI_NO_LIMIT: cannot be told */
    char evidence[192]; /* the symbols, libraries or flag that show it; cut at a whole name */
};

/* The file's hazards, in the order of their kinds, as far as the file alone tells.  EXTI_E_ARG past the
 * last.  Any thread. */
EXTI_API int exti_image_hazard(const struct exti_image *im, size_t i, struct exti_hazard_info *out);

/* ---- checking ------------------------------------------------------------------------------- */

/* Checks that `copy` is a sound file and differs from `original` only as a copy may: its id, needed
 * libraries, search path, flags and the names of renamed symbols.  Findings go to `report`; the
 * result is 0 when the check could be made, whatever it found, and *findings counts them. */
EXTI_API int exti_verify(const char *copy, const char *original, exti_report_fn report, void *user,
                         size_t *findings, struct exti_error *err);

/* ---- context directories ---------------------------------------------------------------------- */

/* A context directory holds the copies of one context and manifest.json, which names the context,
 * its API library and, for each copy, its source and the edits made. */

enum exti_copy_state {
    EXTI_COPY_FRESH = 0,   /* up to date */
    EXTI_COPY_STALE = 1,   /* the source has changed since */
    EXTI_COPY_MISSING = 2, /* the copy is gone or was changed behind our back */
    EXTI_COPY_ORPHAN = 3   /* the source is gone */
};

struct exti_copy_info {
    size_t size;
    const char *source, *copy; /* absolute paths */
    const char *build_id;      /* of the source; NULL if it has none */
    uint64_t source_size;
    int64_t source_mtime_ns;
    uint64_t source_inode;
    int is_api;
    enum exti_copy_state state;
    const char *edits; /* JSON object, as in the manifest */
};

struct exti_dir; /* a snapshot of one context directory; any thread once made */

/* EXTI_E_ARG: the manifest.json is another program's.  EXTI_E_FORMAT: it is damaged, or no JSON, and
 * may be anyone's.  EXTI_E_UNSUPPORTED: it is a later version's, or of another system. */
EXTI_API int exti_dir_read(const char *dir, struct exti_dir **out, struct exti_error *err);
EXTI_API const char *exti_dir_name(const struct exti_dir *d); /* the context's name */
EXTI_API int exti_dir_renamed(const struct exti_dir *d);      /* API symbols have private names */
EXTI_API size_t exti_dir_count(const struct exti_dir *d);     /* copies, the API library included */
EXTI_API int exti_dir_copy(const struct exti_dir *d, size_t i, struct exti_copy_info *out);
EXTI_API void exti_dir_free(struct exti_dir *d); /* NULL ok */

/* Makes every copy of the directory again in memory and compares: finds what is stale, missing, torn
 * or was changed.  Then, that the copies are files of their own; of Mach-O files, that each library
 * needed is a copy of the context's, the system's, or shared; and, of PE files, that no import, delay
 * import or forwarder of theirs leads to the original of the API library or python3.dll, to another
 * context's copy, or to a symbol that is not there.  As exti_verify otherwise. */
EXTI_API int exti_dir_verify(const char *dir, exti_report_fn report, void *user, size_t *findings,
                             struct exti_error *err);

/* Removes the copies, the manifest and, when nothing else is in it, the directory.  A directory
 * without a manifest is refused.  Files that the manifest does not name stay.  On Windows a copy that a
 * process has loaded stays too: EXTI_E_IO names it, os_error is EBUSY, and the next call goes on. */
EXTI_API int exti_dir_clean(const char *dir, struct exti_error *err);

/* ---- quirks ------------------------------------------------------------------------------------ */

/* Rules for packages that need something of their own: libraries that are shared or not, symbols to rename
 * or redirect, environment to set, or that a file cannot be isolated and why.  Those of this library come
 * first, then those of the files, and later ones win.  extisolate-quirks(5) has the format. */

struct exti_quirks; /* any thread once made */

struct exti_quirk_info {
    size_t size;
    const char *id;
    const char *file; /* that the rule is from; NULL: the library */
    size_t index;     /* in its file, from 0 */
    const char
        *disabled_by; /* the file that disables or replaces it: it applies to nothing; or NULL */
    const char *rule; /* the whole of it, a JSON object */
};

/* EXTI_E_FORMAT names the rule and the member, or line and column, of what is not as the format has it. */
EXTI_API int exti_quirks_open(const char *const *files, size_t count, struct exti_quirks **out,
                              struct exti_error *err);
EXTI_API size_t exti_quirks_count(const struct exti_quirks *q);
EXTI_API int exti_quirks_info(const struct exti_quirks *q, size_t i, struct exti_quirk_info *out);
/* The first rule, from `from` on, that applies to the file `path`, which `im` describes; the count when
 * there is none. */
EXTI_API size_t exti_quirks_next(const struct exti_quirks *q, const char *path,
                                 const struct exti_image *im, size_t from);
/* The i-th variable that the environment should have before the file is loaded, unless it has it with
 * another value.  1, or 0 past the end.  The library itself never changes the environment. */
EXTI_API int exti_quirks_environment(const struct exti_quirks *q, const char *path,
                                     const struct exti_image *im, size_t i, const char **name,
                                     const char **value);
EXTI_API void exti_quirks_free(struct exti_quirks *q); /* NULL ok */

/* ---- contexts --------------------------------------------------------------------------------- */

struct exti_ctx;    /* one context: any thread, calls on one context are safe at the same time */
struct exti_module; /* one loaded copy; owned by its context */

enum exti_log_level { EXTI_LOG_DEBUG = 0, EXTI_LOG_INFO = 1, EXTI_LOG_WARN = 2 };

/* Hooks, all optional.  They run on the thread of the call that causes them and may call the library
 * again, but before_load of the API library must not ask for its module.  A negative return fails
 * the call with EXTI_E_HOOK. */
struct exti_hooks {
    size_t size;
    /* The copy's file name for `original`: fills `out` (`cap` bytes) with a plain file name, or
     * leaves it as it is, which is the proposed one.  Must give the same answer every time, and not
     * call the library: the directory is locked. */
    int (*copy_name)(void *user, const char *original, char *out, size_t cap);
    /* The copy is complete and about to be opened. */
    int (*before_load)(void *user, struct exti_ctx *ctx, const char *original, const char *copy);
    /* The copy is open, bound and proven; its initialisers have run.  On failure it is closed. */
    int (*after_load)(void *user, struct exti_ctx *ctx, struct exti_module *m);
    /* The last reference is about to go; the module is still whole. */
    void (*before_close)(void *user, struct exti_ctx *ctx, struct exti_module *m);
    void (*log)(void *user, enum exti_log_level level, const char *message);
};

/* Within every copy of the context, references to `symbol` (an undefined one: "sigaction") are
 * bound to `to` instead, after the copy's initialisers have run. */
struct exti_redirect {
    const char *symbol;
    void *to;
};

/* Give the API symbols private names even if no global one is in the way; done unasked when the host
 * exports any of them. */
#define EXTI_CTX_RENAME 1u
/* fsync each copy and the manifest before they count. */
#define EXTI_CTX_SYNC 2u
/* exti_ctx_close leaves the modules mapped: for a process that is about to end anyway, or a runtime whose
 * threads outlive the context in ways that exti_ctx_close cannot see. */
#define EXTI_CTX_KEEP 4u
/* The context is opened for exti_copy alone, for other programs to load: what this one exports does
 * not matter, and exti_load is EXTI_E_ARG. */
#define EXTI_CTX_COPY_ONLY 8u
/* exti_ctx_close removes the directory that exti_ctx_open made if nothing but the API library has come
 * to be copied into it, by whomever. */
#define EXTI_CTX_DROP_UNUSED 16u

/* Which of the libraries that a context's modules need it gets copies of, like those of the modules
 * themselves.  Files that exti_copy or exti_load names are copied in any case. */
enum exti_closure {
    EXTI_CLOSURE_DEFAULT = 0, /* what the directory's copies were made with; for a new one all */
    EXTI_CLOSURE_ALL = 1,     /* all but a base set, whose sharing is right or cannot be helped */
    EXTI_CLOSURE_API = 2,     /* those by which the API library is reached */
    EXTI_CLOSURE_NONE = 3     /* none: all are shared with the rest of the process */
};

/* An exception to that, for the libraries that match `glob`: * is any text, ? any character, [a-z] and
 * [!a-z] one of a set.  A glob with a slash is of the file's path, any other one of its SONAME or file
 * name.  One that is not UTF-8 is EXTI_E_ARG.
 * The C library and its kin are shared whatever a rule says. */
struct exti_rule {
    const char *glob;
    int share; /* else the context gets a copy */
};

struct exti_ctx_opts {
    size_t size;
    const char *dir;                       /* created when new; NULL: a private directory, gone
                                            * at exti_ctx_close */
    const char *name;                      /* [A-Za-z0-9_-]{1,32}; NULL: made up.  Must be that of
                                            * the directory when it exists already.  No two contexts
                                            * loaded in one process may share a name. */
    const char *api_library;               /* the library whose copy all others are pointed at;
                                            * NULL: the one the directory has */
    const struct exti_hooks *hooks;        /* copied; what it points at outlives the context */
    void *user;                            /* handed to the hooks */
    const struct exti_redirect *redirects; /* copied */
    size_t redirect_count;
    uint32_t flags; /* EXTI_CTX_* */
    /* ELF on systems that do not load it: DEFAULT or NONE. */
    enum exti_closure closure;
    const struct exti_rule
        *rules; /* copied; of those that match a library the last counts.  NULL: those
                                    * that the directory has; else the same as those, if it has any */
    size_t rule_count;
    const char *const *quirk_files; /* read by exti_ctx_open; see exti_quirks_open */
    size_t quirk_file_count;
};

/* After a fork the child has the forking thread alone.  It may go on in the contexts that no other thread
 * was in a call of at that moment, loading into them included; not in others, whose locks and runtimes are as
 * their threads left them. */

/* Opens a context: makes or reuses its directory and the copy of its API library.  Loads nothing
 * yet.  Several threads and processes may have one directory open; in one process only one of them
 * can load from it (EXTI_E_BUSY). */
EXTI_API int exti_ctx_open(struct exti_ctx **out, const struct exti_ctx_opts *opts,
                           struct exti_error *err);

/* The context's absolute directory and name. */
EXTI_API const char *exti_ctx_dir(const struct exti_ctx *ctx);
EXTI_API const char *exti_ctx_name(const struct exti_ctx *ctx);

/* Makes sure that an up-to-date copy of `original` is in the directory: reuses it, replaces a stale
 * one or makes a new one.  *path, if asked for, is the copy's absolute path and lives as long as
 * the context.  A copy handed in is traced to its source.  For a PE file that imports from python3.dll
 * what the API library does not export by name, python3.dll is copied as well: the one copied before, or
 * the one beside the API library; EXTI_E_UNSUPPORTED without either, and for what quirks refuse.  EXTI_E_CHECK with os_error ENOENT:
 * the directory has been cleaned, or given another API library, since it was opened. */
EXTI_API int exti_copy(struct exti_ctx *ctx, const char *original, const char **path,
                       struct exti_error *err);

/* What has become of one file of exti_copy_many. */
struct exti_copied {
    size_t size;
    size_t index;                   /* of the file in `originals` */
    const char *copy;               /* absolute path; lives as long as the context.  NULL: none */
    int made;                       /* since the context was opened; else it was up to date */
    const struct exti_error *error; /* why it failed, or NULL; valid during the call only */
    const char *shared;             /* why it is to have no copy, or NULL; likewise */
};
typedef int (*exti_copied_fn)(void *user, const struct exti_copied *file);

struct exti_copy_opts {
    size_t size;
    /* How many of the originals, the last ones, are libraries that copies may open as they run: copied,
     * as if something needed them, are those that the context isolates.  What needs some of them has a
     * say in where they find others, and so comes before. */
    size_t libraries;
    size_t threads; /* 0: as many as there are processors */
    /* Told of each file, in their order, on the calling thread, when it and all that it drags in are
     * done; may be NULL.  Must not call the library: the directory is locked.  A non-zero return stops:
     * of the files that are left those that are done already stay, and the call ends as if they all
     * were. */
    exti_copied_fn copied;
    void *user;
};

/* exti_copy of each of `originals`, by several threads; what comes of it does not depend on how many.  A
 * file that fails does not stop the others, but what else it drags in may have been copied.  The result, and
 * `err`, are those of the first that failed.  Saves the manifest now and then, and at the end: when the
 * process is killed, what is not saved is done again by the next to copy.  `opts` may be NULL. */
EXTI_API int exti_copy_many(struct exti_ctx *ctx, const char *const *originals, size_t count,
                            const struct exti_copy_opts *opts, struct exti_error *err);

/* What has become of a library that copies of the context need. */
enum exti_library_state {
    EXTI_LIBRARY_MISSING = 0, /* the system's loader would not find it either */
    EXTI_LIBRARY_SHARED = 1,
    EXTI_LIBRARY_ISOLATED = 2 /* the context has a copy */
};
struct exti_library_info {
    size_t size;
    const char *name; /* as the first that needs it does */
    const char *file; /* without symbolic links; NULL: missing */
    enum exti_library_state state;
    const char *why;  /* "the C library", for people */
    const char *user; /* the first original that needs it */
    size_t users;     /* how many do */
};

/* Calls `each` for every library that the context's copies, whoever made them, need directly, but for the
 * API library, in the order of their files, missing ones last, until it returns non-zero.  The strings are
 * valid during the call only, and it must not call the library.  With EXTI_CLOSURE_NONE nothing is
 * known. */
EXTI_API int exti_ctx_libraries(struct exti_ctx *ctx,
                                int (*each)(void *user, const struct exti_library_info *library),
                                void *user, struct exti_error *err);
/* The same, but `why` is NULL: from the manifest alone, with no look at the files. */
EXTI_API int exti_ctx_library_states(struct exti_ctx *ctx,
                                     int (*each)(void *user,
                                                 const struct exti_library_info *library),
                                     void *user, struct exti_error *err);

/* Copies `original` if need be, opens the copy with local visibility, re-points its references to
 * the loader (dlopen, dlsym, dlclose, dlerror, dladdr, dlinfo) to the context's and proves its
 * references.  dladdr says of the context's copies that they are their originals.  References that a
 * library of the program's has captured, of which the context has a copy, are re-pointed to that.  The
 * API library is opened first, by the first call.  A file that is loaded already gives the same
 * module, which then takes as many exti_close. */
EXTI_API int exti_load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
                       struct exti_error *err);

/* The API library's module, opened if need be.  Not to be closed. */
EXTI_API int exti_api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err);

/* Looks up `name`, as the original spells it, in the module and the libraries it needs; on Windows in
 * the module alone. */
EXTI_API int exti_symbol(struct exti_module *m, const char *name, void **out,
                         struct exti_error *err);

EXTI_API const char *exti_module_original(const struct exti_module *m);
EXTI_API const char *exti_module_copy(const struct exti_module *m);

/* Gives back one exti_load.  The system may keep the module mapped. */
EXTI_API int exti_close(struct exti_module *m, struct exti_error *err);

/* Closes the modules that are still open, newest first, then the API library; a private directory
 * is removed.  `ctx` is gone whatever the result, which tells of the first failure. */
EXTI_API int exti_ctx_close(struct exti_ctx *ctx, struct exti_error *err); /* NULL ok */

/* The same, and tells what stays mapped.  *left counts the files of the context that do: while it is not
 * 0, memory that their code may use must not be freed.
 *
 * As long as a thread lives that a copy has started, or one of the program's that is in the context (had
 * a value under a thread-specific key of the context when the context deleted that), nothing is unloaded and
 * `report` gets a finding for each such thread: its file is the module that started it.  Otherwise keys that
 * the context has left over are deleted, so that no thread runs their destructors later, and `report`
 * gets a finding for each file that the system's loader has not unloaded: what holds it.  So finalise
 * the runtime first, and close on a thread that has not run in the context, or has no thread-local objects
 * of it.  Threads and keys that initialisers make while a copy is being opened are not seen.  ELF systems;
 * elsewhere nothing is known of threads or of what stays.  With EXTI_CTX_KEEP there are no findings.
 * `report` may be NULL; its findings also go to the log hook. */
EXTI_API int exti_ctx_close_report(struct exti_ctx *ctx, exti_report_fn report, void *user,
                                   size_t *left, struct exti_error *err);

/* ---- proof of isolation ------------------------------------------------------------------------ */

struct exti_proof {
    size_t size;
    size_t modules;    /* copies looked at */
    size_t references; /* symbol references followed */
    size_t leaks;      /* of these, the ones that left the context */
};

/* Walks the relocations of every loaded copy of the context, and of the shared libraries they drag
 * in that use the API, and reports each reference that leaves the context: to a symbol of the API library
 * or a process-wide unique one that is bound outside it; and, of a copy, to any symbol, if it is bound
 * into another context's copy or into the original of a file of which the context has a copy.  The
 * finding's message names the symbol and who captured it, its file the module.  No other thread may load
 * into or close this context meanwhile. */
EXTI_API int exti_ctx_prove(struct exti_ctx *ctx, exti_report_fn report, void *user,
                            struct exti_proof *out, struct exti_error *err);

#ifdef __cplusplus
}
#endif
#endif
