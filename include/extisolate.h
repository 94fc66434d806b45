/* extisolate.h - private copies of native extension modules, one set per interpreter context.
 *
 * This is the whole public interface of libextisolate.  All names start with exti_ or EXTI_.
 *
 * Errors.  Every call that can fail returns 0 or a negative enum exti_code.  Its last parameter is
 * a struct exti_error owned by the caller, or NULL if the details are not wanted.  On failure the
 * call writes no output argument; on success it does not touch the error.  The library never
 * prints, exits or aborts.
 *
 * Option structs.  Fill the struct with zeros, then set .size to its sizeof.  The library accepts a
 * longer struct from a newer caller if the members that it does not know are zero.  So an old
 * library refuses an option that it would otherwise ignore.
 *
 * Strings.  Input strings are borrowed for the duration of the call, unless a member says
 * otherwise.  Output strings live as long as the object that they belong to.  On Windows paths are
 * UTF-8, of any length and with either slash. */
#ifndef EXTISOLATE_H
#define EXTISOLATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; the Makefile reads these three lines. */
#define EXTI_VERSION_MAJOR 0
#define EXTI_VERSION_MINOR 1
#define EXTI_VERSION_PATCH 0

#ifndef EXTI_API
#define EXTI_API
#endif

/* ---- errors ---------------------------------------------------------------------------------- */

/* The values are ABI: append only, never renumber. */
enum exti_code {
    EXTI_OK = 0,
    EXTI_E_ARG = -1, /* a wrong argument: a NULL, a bad option, a bad name */
    EXTI_E_NOMEM = -2,
    EXTI_E_IO = -3,          /* the operating system refused: see os_error */
    EXTI_E_FORMAT = -4,      /* the file is malformed: see offset */
    EXTI_E_UNSUPPORTED = -5, /* the file is well formed, but the edit would not be safe */
    EXTI_E_NOSPACE = -6,     /* the file has no room for the edit */
    EXTI_E_LOAD = -7,        /* the system's loader refused the copy: message has its text */
    EXTI_E_NOSYM = -8,       /* no such symbol in the module */
    EXTI_E_HOOK = -9,        /* a hook returned a negative value */
    EXTI_E_INTERPOSED = -10, /* a symbol from outside the context captured a reference */
    EXTI_E_CHECK = -11,      /* a copy does not match its source and edits */
    EXTI_E_BUSY = -12,       /* the context directory is already loaded in this process */
    EXTI_E_TRUST = -13,      /* others can change the context directory, or a file in it */
    EXTI_E_CAPTURED = -14    /* a finding: a reference that means one library leads to another */
};

#define EXTI_NO_OFFSET UINT64_MAX

/* Owned by the caller; holds no heap memory.  A path that does not fit keeps its end, a message its
 * beginning. */
struct exti_error {
    int code;          /* enum exti_code */
    int os_error;      /* errno, on Windows the equivalent one; 0 if the system is not involved */
    uint64_t offset;   /* absolute file offset of the fault, or EXTI_NO_OFFSET */
    char file[512];    /* the file at fault, or "" */
    char message[512]; /* what is wrong, where, and what would be right; no newline */
};

/* Gives the name of a code: "EXTI_E_FORMAT" for -4.  A static string, never NULL.  Any thread. */
EXTI_API const char *exti_code_name(int code);

/* Gives the library's version: "0.1.0".  A static string.  Any thread. */
EXTI_API const char *exti_version(void);

/* Receives each finding of a check.  `finding` is valid only during the call.  A non-zero return
 * stops the check, which then returns 0 as if it were complete. */
typedef int (*exti_report_fn)(void *user, const struct exti_error *finding);

/* ---- rewriting one file ---------------------------------------------------------------------- */

enum exti_needed_where { EXTI_NEEDED_LAST = 0, EXTI_NEEDED_FIRST = 1 };

/* One change to the list of needed libraries (DT_NEEDED, LC_LOAD_DYLIB, import descriptors).
 *   from NULL    adds `to` at the place given by `where`, unless it is in the list
 *   to NULL      removes `from`; an error if it is not in the list (but see EXTI_RW_ALLOW_ABSENT)
 *   both given   puts `to` in the place of `from`; an error if neither is in the list (the same)
 * The list is in lookup order, so nothing else moves. */
struct exti_needed {
    const char *from, *to;
    enum exti_needed_where where;
};

/* Renames one dynamic symbol, whether the file defines it or only refers to it. */
struct exti_rename {
    const char *from, *to;
};

/* The file finds its own symbols first.  ELF: sets DF_SYMBOLIC.  Mach-O: binds flat references to
 * symbols that the file exports to the file itself. */
#define EXTI_RW_SYMBOLIC 1u
#define EXTI_RW_CLEAR_NODELETE 2u /* ELF: clears DF_1_NODELETE, so that the copy can be unloaded */
/* Gives each copy its own C++ symbols instead of one per process.  ELF: STB_GNU_UNIQUE becomes
 * STB_GLOBAL.  Mach-O: references to weak definitions bind to the file's own. */
#define EXTI_RW_CLEAR_UNIQUE 4u
/* The system's loader does not see the file's constructors, so that they can run later.  exti_load
 * runs them; nobody else does.  ELF: DT_INIT and DT_INIT_ARRAY.  Mach-O: sections of initialisers
 * and of terminators, and LC_ROUTINES_64. */
#define EXTI_RW_WITHHOLD 8u
#define EXTI_RW_ALLOW_ABSENT 16u /* a library to remove or to replace need not be in the list */

struct exti_rewrite_opts {
    size_t size;
    const char *id;                   /* new SONAME, LC_ID_DYLIB or PE name; NULL keeps it */
    const struct exti_needed *needed; /* applied in order */
    size_t needed_count;
    /* New library search path (RUNPATH); "" removes it, NULL keeps it.  A file with DT_RPATH keeps
     * that kind of tag. */
    const char *path_set;
    const char *path_prepend; /* entries, separated by ':', to search before the others */
    /* The original's directory.  It replaces $ORIGIN in kept entries, so that they mean the same in
     * the copy. */
    const char *origin;
    const struct exti_rename *renames; /* any order; names not in the file are ignored */
    size_t rename_count;
    uint32_t flags; /* EXTI_RW_* */
    int sync;       /* non-zero: fsync the file and its folder before returning */

    /* Mach-O: a reference names the library that it binds to, or none (a flat lookup, or the main
     * program).  References that name none are bound to the needed library `bind_name` if the file
     * `bind_file` exports the symbol.  If bind_file is NULL, they stay as they are.  If bind_name
     * is NULL, they are bound to the copy itself.  `bind_short` may give another name by which the
     * system's loader finds the same library; it is used if the header has no room for bind_name.
     *
     * PE: if a library is renamed to `bind_name` (or renamed at all, if that is NULL), `bind_file`
     * must export every symbol imported from it; otherwise the file is refused.  Libraries of a PE
     * file can be renamed, but not added or removed.  Names are compared ignoring case, and a
     * rename includes delay imports and forwarders.  Search paths, `origin` and `flags` have no
     * effect. */
    const char *bind_file, *bind_name, *bind_short;
};

/* Writes a changed copy of `src` to `dst`, which is either created or replaced as a whole, or left
 * as it was.  No file is written to in place: the copy is a new file, which gets its name only
 * after it was checked against the original.  The same input and options give the same bytes.
 *
 * `dst` may be `src`, by this or another path.  Then the new file takes its place, also where `dst`
 * is a symbolic link to it; on POSIX systems with its mode and, if the caller may, its owner.
 * Processes that have the old file open or mapped keep that, and so do other hard links.  Any
 * thread. */
EXTI_API int exti_rewrite(const char *src, const char *dst, const struct exti_rewrite_opts *opts,
                          struct exti_error *err);

/* ---- describing one file --------------------------------------------------------------------- */

struct exti_image; /* a read-only description of one file; any thread may use it */

#define EXTI_IMAGE_NODELETE 1u   /* cannot be unloaded (DF_1_NODELETE) */
#define EXTI_IMAGE_STATIC_TLS 2u /* uses the static TLS block, which is small */
#define EXTI_IMAGE_TEXTREL 4u    /* has relocations in its code */
#define EXTI_IMAGE_SYMBOLIC 8u   /* finds its own symbols first */
#define EXTI_IMAGE_BIND_NOW 16u
#define EXTI_IMAGE_UNIQUE 32u  /* has symbols that are unique in a process (STB_GNU_UNIQUE) */
#define EXTI_IMAGE_INTERP 64u  /* names a program interpreter, so it also runs as a program */
#define EXTI_IMAGE_BUNDLE 128u /* Mach-O: MH_BUNDLE, cannot be linked against */
/* PE; edited copies have neither of the first two. */
#define EXTI_IMAGE_BOUND 256u           /* contains precomputed addresses of its imports */
#define EXTI_IMAGE_FORCE_INTEGRITY 512u /* is loaded only with a valid signature */
#define EXTI_IMAGE_RELOCATABLE 1024u    /* can be loaded at any address */
#define EXTI_IMAGE_NODEFLIB 2048u /* ELF: its libraries are in no default folder (DF_1_NODEFLIB) */
/* Mach-O: defines Objective-C classes or Swift types, whose names must be unique in a process. */
#define EXTI_IMAGE_CLASSES 4096u
#define EXTI_IMAGE_WITHHELD 8192u /* ELF, Mach-O: only exti_load runs its constructors */

enum exti_signature {
    EXTI_SIGNATURE_NONE = 0,
    EXTI_SIGNATURE_LINKER = 1,  /* ad hoc, made by a linker */
    EXTI_SIGNATURE_ADHOC = 2,   /* ad hoc, made by codesign */
    EXTI_SIGNATURE_IDENTITY = 3 /* made with a certificate; a copy loses it */
};

struct exti_image_info {
    size_t size;          /* set by the caller; members past it are not written */
    const char *format;   /* "ELF", ... */
    const char *machine;  /* "x86-64", ... */
    const char *id;       /* SONAME or the like; PE: export directory's name; NULL if none */
    const char *rpath;    /* NULL if none */
    const char *runpath;  /* NULL if none */
    const char *build_id; /* lower-case hex; PE: the GUID and age of the PDB; NULL if none */
    int bits;             /* 32 or 64 */
    int big_endian;
    uint32_t flags;    /* EXTI_IMAGE_* */
    uint64_t tls_size; /* bytes of thread-local storage that each thread needs for this file */
    size_t needed_count, symbol_count;
    /* Mach-O, some also PE; otherwise 0. */
    size_t slice_count;   /* slices of a universal file; see exti_image_slice */
    uint64_t header_room; /* free bytes behind the load commands; PE: behind the section table */
    enum exti_signature signature;
    uint32_t min_os, sdk; /* xxxx.yy.zz: 0x000b0000 is 11.0 */
    /* PE; otherwise 0. */
    const char *unfit;     /* why a copy cannot be loaded beside the original; NULL if it can */
    uint64_t overlay_size; /* bytes behind the last section, without a signature */
    uint32_t load_flags;   /* DependentLoadFlags: folders from which its libraries may be loaded */
    uint64_t tls_align;    /* ELF: alignment of the thread-local storage; otherwise 0 */
    uint64_t shared_size;  /* ELF: bytes that lean copies can take from this; otherwise 0 */
    const char *full;      /* ELF: why copies are never lean; NULL if they can be */
};

#define EXTI_SYM_EXPORT 1u /* defined here and visible; without it, an import */
#define EXTI_SYM_WEAK 2u
#define EXTI_SYM_UNIQUE 4u
#define EXTI_SYM_TLS 8u
#define EXTI_SYM_FUNCTION 16u

#define EXTI_BIND_SELF 0    /* the file itself */
#define EXTI_BIND_MAIN (-1) /* the main program */
#define EXTI_BIND_FLAT (-2) /* the first library that has it */
#define EXTI_BIND_WEAK (-3) /* a single definition in the process */

#define EXTI_NEED_WEAK 1u     /* may be missing; PE: a delay import, loaded on first use */
#define EXTI_NEED_REEXPORT 2u /* this file exports its symbols too */
#define EXTI_NEED_UPWARD 4u   /* part of a dependency cycle */

struct exti_symbol_info {
    size_t size;
    const char *name;    /* PE: "#12" if it has only an ordinal */
    const char *version; /* NULL if none */
    uint32_t flags;      /* EXTI_SYM_* */
    /* Mach-O or PE import: number of the needed library that it binds to, from 1; Mach-O: or
     * EXTI_BIND_*. */
    int32_t library;
    const char *forward; /* PE: a forwarded export, "LIBRARY.SYMBOL" or "LIBRARY.#12"; else NULL */
    uint32_t ordinal;    /* PE: the number for export or import; 0 if it has none */
};

/* Describes the file; exti_image_free *out. */
EXTI_API int exti_inspect(const char *path, struct exti_image **out, struct exti_error *err);
EXTI_API int exti_image_info(const struct exti_image *im, struct exti_image_info *out);
EXTI_API const char *exti_image_needed(const struct exti_image *im, size_t i); /* NULL past end */
EXTI_API uint32_t exti_image_needed_flags(const struct exti_image *im, size_t i); /* EXTI_NEED_* */
EXTI_API const char *exti_image_path(const struct exti_image *im, size_t i); /* Mach-O: LC_RPATHs */
/* Gives one architecture of a universal Mach-O file, owned by `im`; NULL past the end.  `im` itself
 * describes the first architecture that can be rewritten. */
EXTI_API const struct exti_image *exti_image_slice(const struct exti_image *im, size_t i);
EXTI_API int exti_image_symbol(const struct exti_image *im, size_t i, struct exti_symbol_info *out);
/* Searches the file, starting at offset `from`, for `name` as text: ASCII or UTF-16, in any case.
 * Skips the file's id, needed libraries and search path.  A file with such text may look up
 * something by that name at run time.  Returns the offset, or EXTI_NO_OFFSET if there is none, or
 * if the file has changed since it was described. */
EXTI_API uint64_t exti_image_mention(const struct exti_image *im, const char *name, uint64_t from);
EXTI_API void exti_image_free(struct exti_image *im); /* NULL ok */

/* ---- hazards of one file --------------------------------------------------------------------- */

/* Properties and calls of a file that matter if a process has several copies of it.  The values are
 * ABI: append only. */
enum exti_hazard {
    EXTI_HAZARD_UNIQUE = 0,       /* has C++ symbols that are unique in a process */
    EXTI_HAZARD_NODELETE = 1,     /* is never unloaded */
    EXTI_HAZARD_HOST_API = 2,     /* is a program that exports the Python API */
    EXTI_HAZARD_STATIC_TLS = 3,   /* has thread-locals in a block that cannot grow */
    EXTI_HAZARD_THREAD_KEYS = 4,  /* makes thread-specific keys; the system has few */
    EXTI_HAZARD_THREADS = 5,      /* starts threads */
    EXTI_HAZARD_DESTRUCTORS = 6,  /* has code that runs when the file is unloaded */
    EXTI_HAZARD_EXIT = 7,         /* registers handlers that run at exit, even if unloaded */
    EXTI_HAZARD_THREAD_EXIT = 8,  /* has thread-locals with destructors, run at thread exit */
    EXTI_HAZARD_SIGNALS = 9,      /* uses signal handlers or timers */
    EXTI_HAZARD_FORK = 10,        /* forks, or registers fork handlers */
    EXTI_HAZARD_DIRECTORY = 11,   /* changes the current directory */
    EXTI_HAZARD_UMASK = 12,       /* changes the mode of new files */
    EXTI_HAZARD_ENVIRONMENT = 13, /* changes environment variables */
    EXTI_HAZARD_LOCALE = 14,      /* changes the C locale */
    EXTI_HAZARD_END = 15,         /* ends the process */
    EXTI_HAZARD_OPENMP = 16,      /* uses OpenMP and its threads */
    EXTI_HAZARD_BLAS = 17,        /* uses a BLAS library and its threads */
    EXTI_HAZARD_RECORD_LOCKS = 18 /* may lock files for the process, by fcntl or lockf */
};

enum exti_outcome {
    EXTI_OUTCOME_COPY = 0,   /* solved: copies do not have it */
    EXTI_OUTCOME_LOAD = 1,   /* solved when copies are loaded */
    EXTI_OUTCOME_LIMIT = 2,  /* limits how many contexts a process can have */
    EXTI_OUTCOME_SHARED = 3, /* affects all contexts */
    EXTI_OUTCOME_UNLOAD = 4  /* matters when a copy is unloaded */
};

/* Bytes of the static TLS block that glibc leaves, at least, to libraries opened at run time; the
 * whole process shares them.  Each byte of the tunable glibc.rtld.optional_static_tls above 512
 * adds one.  Where compilers use TLS descriptors by default, as on arm64, these may take 512. */
#define EXTI_STATIC_TLS_ROOM 1664
/* The value of struct exti_hazard_info.most if the limit is not known. */
#define EXTI_NO_LIMIT UINT64_MAX

struct exti_hazard_info {
    size_t size; /* set by the caller; members past it are not written */
    enum exti_hazard kind;
    enum exti_outcome outcome;
    const char *name;   /* "static-tls", ...; a static string */
    const char *advice; /* for people: what it means and what to do; a static string */
    uint64_t count;     /* size of the evidence: symbols, or bytes of static TLS for one copy */
    uint64_t most;      /* LIMIT: how many copies a process can have if nothing else uses the same
                         * resource; EXTI_NO_LIMIT if that is not known */
    char evidence[192]; /* the symbols, libraries or flag that reveal it; ends with a whole name */
};

/* Gives the file's hazards, ordered by kind, as far as the file alone reveals them.  EXTI_E_ARG
 * past the last.  Any thread. */
EXTI_API int exti_image_hazard(const struct exti_image *im, size_t i, struct exti_hazard_info *out);

/* ---- checking -------------------------------------------------------------------------------- */

/* Checks that `copy` is a sound file and differs from `original` only where a copy may: in its id,
 * needed libraries, search path, flags and the names of renamed symbols.  Findings go to `report`,
 * and *findings counts them.  Returns 0 if the check could be made, whatever it found. */
EXTI_API int exti_verify(const char *copy, const char *original, exti_report_fn report, void *user,
                         size_t *findings, struct exti_error *err);

/* ---- context directories --------------------------------------------------------------------- */

/* A context directory holds the copies of one context, and manifest.json.  The manifest names the
 * context, its API library and, for each copy, its source and the edits made. */

enum exti_copy_state {
    EXTI_COPY_FRESH = 0,   /* up to date */
    EXTI_COPY_STALE = 1,   /* the source has changed since it was copied */
    EXTI_COPY_MISSING = 2, /* the copy is gone, or something else changed it */
    EXTI_COPY_ORPHAN = 3,  /* the source is gone */
    EXTI_COPY_UNKNOWN = 4  /* the system does not let us look at the source or the copy */
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
    /* Bytes that a lean copy has not itself: it maps code and constants from its source, and reads
     * data from it.  0: it is full. */
    uint64_t shared_size;
};

struct exti_dir; /* a snapshot of one context directory; any thread may use it */

/* Reads a context directory; exti_dir_free *out.  EXTI_E_ARG: the manifest.json belongs to another
 * program.  EXTI_E_FORMAT: it is damaged or not JSON, and may belong to anyone.
 * EXTI_E_UNSUPPORTED: it was written by a later version or on another system. */
EXTI_API int exti_dir_read(const char *dir, struct exti_dir **out, struct exti_error *err);
EXTI_API const char *exti_dir_name(const struct exti_dir *d); /* the context's name */
EXTI_API int exti_dir_renamed(const struct exti_dir *d);      /* API symbols have private names */
/* The number of copies, with the API library's. */
EXTI_API size_t exti_dir_count(const struct exti_dir *d);
EXTI_API int exti_dir_copy(const struct exti_dir *d, size_t i, struct exti_copy_info *out);
EXTI_API void exti_dir_free(struct exti_dir *d); /* NULL ok */

/* Checks that only this user (the effective one) and root can change what is in the directory: that
 * the folder and its manifest and lock belong to one of them, that nobody else may write to them,
 * and that nobody else can replace a folder above, or a link in the path.  A folder above may also
 * be sticky, as /tmp is.  Write permission for a group counts unless it is the owner's private
 * group.  EXTI_E_TRUST: the error names what others can change.  exti_ctx_open checks the same, and
 * each copy before it is used; the other functions on directories do not.  On Windows everything
 * passes. */
EXTI_API int exti_dir_trust(const char *dir, struct exti_error *err);

/* Makes every copy of the directory again in memory and compares: finds copies that are stale,
 * missing, torn or changed.  Also checks that no two copies are the same file, and, if
 * exti_dir_trust accepts the directory, that none is a link or can be changed by others.  In Mach-O
 * files each needed library must be a copy in the context, a system library or shared.  In PE files
 * no import, delay import or forwarder may lead to the original of the API library or of
 * python3.dll, to another context's copy, or to a missing symbol.  Findings and result are as in
 * exti_verify. */
EXTI_API int exti_dir_verify(const char *dir, exti_report_fn report, void *user, size_t *findings,
                             struct exti_error *err);

/* Removes the copies, the manifest and, if it is then empty, the directory.  Refuses a directory
 * without a manifest.  Keeps files that the manifest does not name.  On Windows it must also keep a
 * copy that a process has loaded: then it fails with EXTI_E_IO, which names the copy, and os_error
 * EBUSY.  Another call continues. */
EXTI_API int exti_dir_clean(const char *dir, struct exti_error *err);

/* ---- quirks ---------------------------------------------------------------------------------- */

/* Quirks are rules for packages with special needs: libraries to share or not to share, symbols to
 * rename or redirect, environment variables to set, or files that cannot be isolated and why.  The
 * library's own rules come first, then those from files; later rules win.  extisolate-quirks(5)
 * describes the format. */

struct exti_quirks; /* a set of rules; any thread may use it */

struct exti_quirk_info {
    size_t size;
    const char *id;
    const char *file; /* the file with the rule; NULL: the library */
    size_t index;     /* in its file, from 0 */
    /* The file that disables or replaces the rule, which then applies to nothing; or NULL. */
    const char *disabled_by;
    const char *rule; /* the whole rule, a JSON object */
};

/* Reads the library's rules and `files`; exti_quirks_free *out.  EXTI_E_FORMAT: the message names
 * the faulty rule and member, or line and column. */
EXTI_API int exti_quirks_open(const char *const *files, size_t count, struct exti_quirks **out,
                              struct exti_error *err);
EXTI_API size_t exti_quirks_count(const struct exti_quirks *q);
EXTI_API int exti_quirks_info(const struct exti_quirks *q, size_t i, struct exti_quirk_info *out);
/* Gives the index of the first rule, starting at `from`, that applies to the file `path` described
 * by `im`; exti_quirks_count if there is none. */
EXTI_API size_t exti_quirks_next(const struct exti_quirks *q, const char *path,
                                 const struct exti_image *im, size_t from);
/* Gives variable `i` of those that should be set before the file is loaded, unless the environment
 * already has them with another value.  Returns 1, or 0 past the end.  The library itself never
 * changes the environment. */
EXTI_API int exti_quirks_environment(const struct exti_quirks *q, const char *path,
                                     const struct exti_image *im, size_t i, const char **name,
                                     const char **value);
EXTI_API void exti_quirks_free(struct exti_quirks *q); /* NULL ok */

/* ---- contexts -------------------------------------------------------------------------------- */

struct exti_ctx;    /* one context; any threads may call it at the same time */
struct exti_module; /* one loaded copy; owned by its context */

enum exti_log_level { EXTI_LOG_DEBUG = 0, EXTI_LOG_INFO = 1, EXTI_LOG_WARN = 2 };

/* Where a copy calls exit or the like. */
#define EXTI_EXIT_OWN_THREAD 1u /* on a thread that a copy of the context has started */
/* In a signal handler, or on a thread that has left one by longjmp. */
#define EXTI_EXIT_IN_HANDLER 2u

/* Hooks, all optional.  Each runs on the thread of the call that causes it.  A hook may call the
 * library unless it says otherwise, but before_load of the API library must not ask for that
 * library's module.  A negative return makes the call fail with EXTI_E_HOOK. */
struct exti_hooks {
    size_t size;
    /* Names the copy of `original`: `out` (`cap` bytes) holds the proposed name, and the hook keeps
     * it or writes another plain file name.  It must give the same answer every time.  It must not
     * call the library, because the directory is locked. */
    int (*copy_name)(void *user, const char *original, char *out, size_t cap);
    /* The copy is complete and will be opened next. */
    int (*before_load)(void *user, struct exti_ctx *ctx, const char *original, const char *copy);
    /* The copy is open, bound and proven, and its constructors have run.  If the hook fails, the
     * copy is closed. */
    int (*after_load)(void *user, struct exti_ctx *ctx, struct exti_module *m);
    /* The last reference will be given up next; the module is still complete. */
    void (*before_close)(void *user, struct exti_ctx *ctx, struct exti_module *m);

    void (*log)(void *user, enum exti_log_level level, const char *message);

    /* Linux.  The default action of `sig`, which ends a process, has come to the context, while the
     * program or another context does something else with that signal: the context is to end as if
     * by exit(128 + sig).  NULL: the context does not end.  Called in a signal handler or where a
     * copy sends itself the signal, on any thread, so the hook may call what is async-signal-safe
     * only; it is not called in a process that was forked in the context. */
    void (*end)(void *user, struct exti_ctx *ctx, int sig);

    /* ELF systems; all three are called where a copy makes such a call, on its thread.  They may
     * call what is async-signal-safe only; `exit` anything where can_exit was not told of a handler
     * (EXTI_EXIT_IN_HANDLER).
     *
     * A copy has called exit, _exit, _Exit, quick_exit or a function of the exec family.  Non-zero:
     * the context is to end by that alone, as a process would.  `where`: EXTI_EXIT_*.  0, or NULL
     * here or for `exit`: the process ends or runs the other program, as it does anyway in a
     * process that was forked since the context was opened, and for calls of constructors and
     * destructors of copies. */
    int (*can_exit)(void *user, struct exti_ctx *ctx, uint32_t where);
    /* After can_exit, when the context's own exit handlers have run if there are any to run, or
     * when the program has ended that the exec family has started in a child: the context has ended
     * with `status`, 0 to 255.  Its signal actions and timers are gone.  If the hook returns, the
     * thread waits for ever, in the middle of the copy's call; the hook may instead leave by
     * longjmp for a frame that the program has below those of the context.  What locks the thread
     * has in the context stay locked, so other threads should not go on in the context, and
     * exti_ctx_close leaves it mapped.  Called again, with the same status, if another thread of it
     * ends it, but not once exti_ctx_close has begun: then the thread waits for ever. */
    void (*exit)(void *user, struct exti_ctx *ctx, int status);
    /* A copy has called abort, or an assertion of it has failed: the process will die when the hook
     * returns. */
    void (*abort)(void *user, struct exti_ctx *ctx);
};

/* In every copy of the context, binds references to the undefined symbol `symbol`, such as
 * "sigaction", to `to` instead of another library's: before the copy's constructors run, except on
 * Windows. */
struct exti_redirect {
    const char *symbol;
    void *to;
};

/* Gives the API symbols private names even if the host exports none of them.  If it does, they get
 * private names in any case. */
#define EXTI_CTX_RENAME 1u
/* Fsyncs each copy and the manifest before they count as made. */
#define EXTI_CTX_SYNC 2u
/* exti_ctx_close leaves the modules mapped.  For a process that is about to end, or a runtime whose
 * threads outlive the context without exti_ctx_close being able to see them. */
#define EXTI_CTX_KEEP 4u
/* The context is opened only for exti_copy; other programs load the copies.  So the symbols that
 * this program exports do not matter, and exti_load fails with EXTI_E_ARG.  The copies can be
 * loaded by anyone: the system's loader runs their constructors. */
#define EXTI_CTX_COPY_ONLY 8u
/* exti_ctx_close removes the directory if exti_ctx_open made it and nobody has copied anything into
 * it.  The API library's copy, which each context has, counts if exti_copy was asked for it. */
#define EXTI_CTX_DROP_UNUSED 16u
/* With EXTI_CTX_COPY_ONLY: the copies are for exti_load of other processes, which alone runs their
 * constructors (EXTI_RW_WITHHOLD).  Copies of one kind are stale for users of the other kind, and
 * are made again when these need them.  So give each kind a directory of its own. */
#define EXTI_CTX_FOR_LOADING 32u
/* Believes what is in the directory, whoever can change it: see exti_dir_trust. */
#define EXTI_CTX_TRUST_DIR 64u
/* Linux.  Copies set the process's signal actions and timers, as other libraries do.  Without this
 * flag each context has signal actions and timers of its own: a signal that comes from outside is
 * handled by the program, if it has set a handler, and by each context that has; what a context
 * sends to its own process, and its timers, are its own; closing it takes its handlers away.
 * It waits for the children that its copies have started, and for no others.  docs/signals.md */
#define EXTI_CTX_PROCESS_SIGNALS 256u

/* exti_ctx_close fails with EXTI_E_BUSY, and the context stays open, while calls of other threads
 * use it: the program's calls of this library, and calls of copies that open libraries or start
 * threads.  Without the flag it waits for them. */
#define EXTI_CTX_CLOSE_IDLE 128u
/* On ELF systems a context has environment variables of its own, which begin as the process's are
 * when it is opened: getenv, setenv, `environ` and the like of its copies are for these, and
 * programs that its copies start get them.  So are the calls of shared libraries, from a thread
 * that is in the context (exti_ctx_enter); not their constructors' nor their `environ`.  With the
 * GNU C library the time zone of its copies is the one that its TZ says; shared libraries have the
 * process's.  With the flag copies and shared libraries see the process's variables. */
#define EXTI_CTX_PROCESS_ENVIRONMENT 512u
/* With the GNU C library a context has a locale of its own, which begins as the process's is when
 * it is opened: setlocale of its copies sets it for the threads that they start, those that are in
 * the context by exti_ctx_enter, and the one that calls.  std::locale::global stays the process's.
 * With the flag so does setlocale. */
#define EXTI_CTX_PROCESS_LOCALE 1024u
/* On Linux the threads that a context has for itself (exti_ctx_own_thread) have a current
 * directory, a root and a umask of their own, which begin as those of the first of these threads.
 * With the flag they have the process's. */
#define EXTI_CTX_PROCESS_DIRECTORY 2048u
/* Linux.  The directory and the umask of the context begin as those of the thread that opens it.  A
 * thread of the program that enters the context (exti_ctx_enter) changes to them until it leaves,
 * and what chdir, fchdir and umask of copies do there is the context's: its own threads see it at
 * once, others that are inside when they enter again.  The first time it gets a directory, root and
 * umask of its own for good: the program's chdir on one such thread then changes no other thread's,
 * nor the other way round.  The root stays the thread's.  Threads that copies start there are the
 * context's own; they inherit the caller's signal mask, processors and name, but all else from a
 * thread of the library: what the caller has forbidden itself since, as by seccomp or by giving up
 * capabilities, they may do.  A visit that the system does not allow, for want of descriptors, is
 * left out in silence; so is each where the directory of the thread that opens the context cannot
 * be searched (exti_ctx_own_thread says why).  Without the flag, threads of the program, and those
 * that copies start on them, have the directory that they have outside. */
#define EXTI_CTX_ENTER_DIRECTORY 4096u
/* On ELF systems exit, _exit, quick_exit, the exec family, abort, and the functions that atexit,
 * on_exit and at_quick_exit register, are the context's in its copies, where its hooks `can_exit`
 * and `exit` say that it can end alone: docs/ends.md.  With the flag they are the process's. */
#define EXTI_CTX_PROCESS_ENDS 8192u
/* On ELF systems copies for exti_load are lean: their files leave out code and constants, which
 * exti_load maps from the originals, so that all contexts and processes share these pages.  With
 * the flag copies have all bytes of their originals; lean ones that are there are made again.
 * docs/lean.md says which are full in any case. */
#define EXTI_CTX_FULL_COPIES 16384u
/* `dir` is new, and for this context alone, as a private directory is: no other process opens it,
 * and nothing is recorded there.  Unlike that, it stays when the context is closed; its files may
 * then become those of later contexts.  EXTI_E_IO if it is there already. */
#define EXTI_CTX_ONE_SHOT 32768u

/* Which of the libraries needed by a context's modules are copied into it, like the modules
 * themselves.  Files passed to exti_copy or exti_load are copied in any case. */
enum exti_closure {
    EXTI_CLOSURE_DEFAULT = 0, /* as in the directory's manifest; ALL in a new directory */
    EXTI_CLOSURE_ALL = 1,     /* all except a base set that must or should be shared */
    EXTI_CLOSURE_API = 2,     /* those that lead to the API library */
    EXTI_CLOSURE_NONE = 3     /* none: the whole process shares them all */
};

/* An exception to enum exti_closure, for the libraries that match `glob`: * matches any text, ? any
 * character, [a-z] and [!a-z] one character in or outside a set.  A glob with a slash is compared
 * with the path of the file, any other glob with its SONAME or file name.  It must be UTF-8, or the
 * call fails with EXTI_E_ARG.  The C library and its companions are shared whatever the rules
 * say. */
struct exti_rule {
    const char *glob;
    int share; /* 0: the context gets a copy */
};

struct exti_ctx_opts {
    size_t size;
    /* Created if it does not exist.  NULL: a private directory.  exti_ctx_close removes it or,
     * while others with private directories are open, leaves it for them to take its files; it goes
     * with the last of these at the latest. */
    const char *dir;
    /* [A-Za-z0-9_-]{1,32}; NULL: generated.  If the directory exists, the name must be the one that
     * it has.  Contexts loaded in the same process must have different names. */
    const char *name;
    /* The library to whose copy all other copies are linked.  NULL: the one in the directory. */
    const char *api_library;
    const struct exti_hooks *hooks;        /* copied; what it points to must outlive the context */
    void *user;                            /* passed to the hooks */
    const struct exti_redirect *redirects; /* copied */
    size_t redirect_count;
    uint32_t flags; /* EXTI_CTX_* */
    /* For ELF files on systems that do not load ELF: only DEFAULT or NONE. */
    enum exti_closure closure;
    /* Copied; the last rule that matches a library counts.  NULL: the rules in the directory.  If
     * the directory has rules, they must be the same. */
    const struct exti_rule *rules;
    size_t rule_count;
    const char *const *quirk_files; /* read by exti_ctx_open; see exti_quirks_open */
    size_t quirk_file_count;
};

/* After a fork, only the forking thread exists in the child.  The child may use, and load into, the
 * contexts in which no other thread was inside a call at that moment.  It must not use the others:
 * their locks and runtimes are in the state in which those threads left them. */

/* Opens a context: makes or reuses its directory and the copy of its API library.  Loads nothing
 * yet.  exti_ctx_close *out.  EXTI_E_TRUST: others can change the directory, and so put their code
 * into this process; EXTI_CTX_TRUST_DIR allows that.  Several threads and processes may have the
 * same directory open, but within one process only one context can load from it; in the others
 * exti_load and exti_api fail with EXTI_E_BUSY. */
EXTI_API int exti_ctx_open(struct exti_ctx **out, const struct exti_ctx_opts *opts,
                           struct exti_error *err);

/* Give the absolute path of the context's directory, and the context's name. */
EXTI_API const char *exti_ctx_dir(const struct exti_ctx *ctx);
EXTI_API const char *exti_ctx_name(const struct exti_ctx *ctx);

/* Makes sure that the directory has an up-to-date copy of `original`: reuses it, replaces a stale
 * one or makes a new one.  *path (`path` may be NULL) is the copy's absolute path and lives as long
 * as the context.  If `original` is itself a copy, its source is copied.
 *
 * A PE file may import symbols from python3.dll that the API library does not export by name.  Then
 * python3.dll is copied as well: the one that was copied before, or else the one beside the API
 * library.  EXTI_E_UNSUPPORTED if there is neither, or if a quirk refuses the file.
 *
 * EXTI_E_CHECK with os_error ENOENT: since it was opened, the directory was cleaned or got another
 * API library. */
EXTI_API int exti_copy(struct exti_ctx *ctx, const char *original, const char **path,
                       struct exti_error *err);

/* The result for one file of exti_copy_many. */
struct exti_copied {
    size_t size;
    size_t index;     /* in `originals` */
    const char *copy; /* absolute path, which lives as long as the context; NULL: none */
    int made;         /* non-zero: made since the context was opened; 0: it was up to date */
    const struct exti_error *error; /* why it failed, or NULL; valid only during the call */
    const char *shared;             /* why it has no copy, or NULL; valid only during the call */
};
typedef int (*exti_copied_fn)(void *user, const struct exti_copied *file);

struct exti_copy_opts {
    size_t size;
    /* How many of the originals, at the end of the list, are libraries that copies may open at run
     * time.  They are treated as needed libraries: copied only if the context isolates them.  Put
     * files that need them first, because those files determine where the libraries find others. */
    size_t libraries;
    size_t threads; /* 0: one per processor */
    /* Called on the calling thread for each file, in order, once it and its dependencies are done;
     * may be NULL.  It must not call the library, because the directory is locked.  A non-zero
     * return stops the call, which then ends as if all files were done; copies already made
     * stay. */
    exti_copied_fn copied;
    void *user;
};

/* Copies each of `originals` like exti_copy, with several threads; their number does not change the
 * result.  A file that fails does not stop the others, though some of its dependencies may have
 * been copied.  The return value and `err` are those of the first file that failed.  The manifest
 * is saved from time to time and at the end: if the process is killed, the next call that copies
 * repeats the work not saved.  `opts` may be NULL. */
EXTI_API int exti_copy_many(struct exti_ctx *ctx, const char *const *originals, size_t count,
                            const struct exti_copy_opts *opts, struct exti_error *err);

/* The state of a library that copies of the context need. */
enum exti_library_state {
    EXTI_LIBRARY_MISSING = 0, /* not found; the system's loader would not find it either */
    EXTI_LIBRARY_SHARED = 1,
    EXTI_LIBRARY_ISOLATED = 2 /* the context has a copy */
};
struct exti_library_info {
    size_t size;
    const char *name; /* as written in the first file that needs it */
    const char *file; /* without symbolic links; NULL: missing */
    enum exti_library_state state;
    const char *why;  /* the reason for its state, for people: "the C library" */
    const char *user; /* the first original that needs it */
    size_t users;     /* how many originals need it */
};

/* Calls `each` for every library that the context's copies need directly, whoever made them, except
 * the API library.  The order is that of their files, with missing ones last.  Stops if `each`
 * returns non-zero.  The strings are valid only during the call of `each`, which must not call the
 * library.  With EXTI_CLOSURE_NONE no libraries are known. */
EXTI_API int exti_ctx_libraries(struct exti_ctx *ctx,
                                int (*each)(void *user, const struct exti_library_info *library),
                                void *user, struct exti_error *err);
/* Like exti_ctx_libraries, but reads only the manifest, not the files, and leaves `why` NULL. */
EXTI_API int exti_ctx_library_states(struct exti_ctx *ctx,
                                     int (*each)(void *user,
                                                 const struct exti_library_info *library),
                                     void *user, struct exti_error *err);

/* Copies `original` if necessary, opens the copy with local visibility and proves its references.
 * The copy's references to the loader (dlopen, dlsym, dlclose, dlerror, dladdr, dlinfo) are patched
 * to the context's own functions; this dladdr gives a copy's original as its file.  If a library of
 * the program has captured a reference, and the context has a copy of that library, the reference
 * is patched to the copy.  Then the constructors run, on this thread, in the system loader's order
 * (on other than ELF systems the system's loader has run them before).  The first call opens the
 * API library first.  If the file is already loaded, the same module is returned, once its
 * constructors have run; call exti_close once per exti_load. */
EXTI_API int exti_load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
                       struct exti_error *err);

/* Gives the API library's module and opens it if necessary.  Do not close it. */
EXTI_API int exti_api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err);

/* Looks up `name`, as spelled in the original, in the module and the libraries that it needs; on
 * Windows only in the module. */
EXTI_API int exti_symbol(struct exti_module *m, const char *name, void **out,
                         struct exti_error *err);

/* Give the paths of the original and of the copy. */
EXTI_API const char *exti_module_original(const struct exti_module *m);
EXTI_API const char *exti_module_copy(const struct exti_module *m);

/* Ends one exti_load.  The system may keep the module mapped. */
EXTI_API int exti_close(struct exti_module *m, struct exti_error *err);

/* Closes the modules that are still open, newest first, then the API library, and removes a private
 * directory.  The result is that of the first failure.  First it waits for calls of other threads
 * that use the context, for a constructor above all; see EXTI_CTX_CLOSE_IDLE.  A constructor or
 * hook of the context itself cannot close it, nor may one of another context wait so:
 * EXTI_E_BUSY.  `ctx` is freed unless the error is
 * EXTI_E_BUSY.  With EXTI_CTX_KEEP it does not wait, and EXTI_E_BUSY is to be taken as the end. */
EXTI_API int exti_ctx_close(struct exti_ctx *ctx, struct exti_error *err); /* NULL ok */

/* From now on the context is as if it had been opened with EXTI_CTX_KEEP: the process is about to
 * end, for example.  NULL ok; not while the context is being closed. */
EXTI_API void exti_ctx_keep(struct exti_ctx *ctx);

/* Tells that a thread of the program is not in the context.  When that is closed, the C++
 * thread-local objects that the thread has of the copies by now are destroyed, on the closing
 * thread, and values that it has left under their thread-specific keys mean nothing.  Else the
 * files of the objects stay mapped until the thread ends.  `thread`: its number in the kernel
 * (gettid); 0: the calling thread.  One that comes into the context again is detached again.  ELF
 * systems; on others nothing is known of threads.  EXTI_E_BUSY: the context is being closed. */
EXTI_API int exti_ctx_detach_thread(struct exti_ctx *ctx, uint64_t thread, struct exti_error *err);

/* Closes the context like exti_ctx_close, and reports what stays mapped.  *left counts the files of
 * the context that stay: as long as it is not 0, memory that their code may use must not be freed.
 *
 * Nothing is unloaded while a thread lives that a copy started, or a thread of the program that is
 * in the context: one that had a value under a thread-specific key of the context when the context
 * deleted that key.  `report` gets a finding for each such thread, with the module that started it
 * as its file.
 *
 * If there is no such thread, the keys that the context has left are deleted, so that no thread
 * runs their destructors later.  Then `report` gets a finding for each file that the system's
 * loader did not unload, which says what holds it.
 *
 * So finalise the runtime first, and before this call have other threads of the program that have
 * run in the context end, or detach them by exti_ctx_detach_thread.  The calling thread's C++
 * thread-local objects are destroyed first.  All of this holds on ELF systems; on others nothing is
 * known of threads or of files that stay.  With EXTI_CTX_KEEP there are no findings, and no objects
 * are destroyed.  `report` may be NULL; findings also go to the log hook. */
EXTI_API int exti_ctx_close_report(struct exti_ctx *ctx, exti_report_fn report, void *user,
                                   size_t *left, struct exti_error *err);

/* Until exti_ctx_leave is given the result, which exti_ctx_enter of another context may come
 * between, the calling thread has the context's locale, unless it has set one of its own by
 * uselocale, and with EXTI_CTX_ENTER_DIRECTORY the context's directory; and shared libraries that
 * it calls see the context's environment variables, as does who calls what a copy has looked up by
 * dlsym.  Threads that copies start are inside from the beginning.  Only calling copies needs no
 * entering.  Nothing fails; ELF systems. */
EXTI_API void *exti_ctx_enter(struct exti_ctx *ctx);
EXTI_API void exti_ctx_leave(void *before);

/* Makes the calling thread one of the context's own, for good: it no longer has the current
 * directory, root and umask of the process, but shares the context's with the threads that it
 * starts, and these with theirs.  So the first of the context's threads calls this before it starts
 * others, with `started` 0.  Where the program itself has started a thread on one of these, that
 * one calls it with `started` 1.  A thread whose directory is its own takes it into other contexts
 * that it enters.  With EXTI_CTX_PROCESS_DIRECTORY nothing happens.  EXTI_E_IO: the system refuses
 * it, as a container's seccomp profile may, and os_error says why; EXTI_E_UNSUPPORTED: it has no
 * such thing.  In both cases the thread stays where it is, but may then be apart from the process's
 * others.  EXTI_E_BUSY: it is
 * another context's own, or should have been started by one of this context's: with
 * EXTI_CTX_ENTER_DIRECTORY all of these share one directory. */
EXTI_API int exti_ctx_own_thread(struct exti_ctx *ctx, int started, struct exti_error *err);

/* ---- proof of isolation ---------------------------------------------------------------------- */

struct exti_proof {
    size_t size;
    size_t modules;    /* copies examined */
    size_t references; /* symbol references followed */
    size_t leaks;      /* references that leave the context */
    size_t captured;   /* references that mean one library, but lead to another's symbol */
};

/* Walks the relocations of every loaded copy of the context, and of the shared libraries among
 * their dependencies that use the API.  Reports each reference that leaves the context: one to a
 * symbol of the API library, or to a symbol unique in the process, that is bound outside the
 * context; and, in a copy, one to any symbol that is bound into another context's copy, into an
 * original that the context has a copy of, or to another's symbol of the same name although it
 * means a library that the context has a copy of.  The finding's message names the symbol and the
 * file that captured it; the finding's file is the module.
 *
 * Counted apart, and reported with the code EXTI_E_CAPTURED if the caller's struct has the member,
 * are a copy's references that lead to a symbol of the program, or of a library which is open
 * globally and which the copy does not need, although a shared library that it needs defines the
 * symbol.  They are as they would be without contexts, so loading does not fail, but logs them.
 * Where the program defines symbols of a shared library, the context normally has a copy of that
 * library, to which loading leads them, and there are none; rules that share the library, and
 * libraries of which a process has one, leave some.  Not captured is what a program replaces for
 * the whole process: functions that allocate, and symbols of the C library, the C++ run-time
 * library, the unwinder and sanitizers; nor what LD_PRELOAD adds, nor a variable that the program
 * has copied from the library (R_*_COPY).
 *
 * During the call no other thread may load into this context or close it. */
EXTI_API int exti_ctx_prove(struct exti_ctx *ctx, exti_report_fn report, void *user,
                            struct exti_proof *out, struct exti_error *err);

#ifdef __cplusplus
}
#endif
#endif
