/* Libraries as the system's loader has mapped them into this process: what they define, what their
 * references are bound to, and where they are.  Symbols have their C names.  Any thread, as long as
 * the library stays loaded. */
#ifndef LOADER_PROCESS_LINKMAP_H
#define LOADER_PROCESS_LINKMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <extisolate.h>

/* One loaded library.  Valid while it stays loaded. */
struct exti_loaded {
    void *handle;     /* borrowed */
    const char *path; /* as the system's loader knows it; NULL on Windows: see exti__loaded_path */
    uintptr_t base;   /* what its addresses are relative to */
    uintptr_t inside; /* some address of its own */
#if !defined(__APPLE__) && !defined(_WIN32)
    const void *dynamic; /* its dynamic section */
    const void *symbols;
    const char *strings;
    const void *symbol_versions, *needed_versions; /* NULL if it has none */
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const void *relocs[2]; /* general and PLT relocations */
    size_t reloc_size[2];
    bool reloc_addends[2];    /* Rela, not Rel */
    size_t relative_count[2]; /* of general Rel and Rela: the first, which name no symbol */
    size_t tls_module;        /* from exti__loaded_each: as exti__loaded_tls_module */
#endif
};

/* The addresses at which a library is mapped, and the part that is read-only once relocated (empty
 * if none). */
struct exti_layout {
    uintptr_t lo, hi, relro_lo, relro_hi;
    bool fixed_dynamic; /* ELF: its dynamic section is in a read-only segment (lld -z rodynamic) */
};

/* The C name of a symbol in this system's file format: Mach-O puts an underscore before it. */
const char *exti__c_name(const char *file_name);

int exti__loaded_from_handle(void *handle, struct exti_loaded *out, struct exti_error *err);

/* Whether the library defines the symbol for others to bind to. */
bool exti__loaded_defines(const struct exti_loaded *lib, const char *name);

/* The i-th library that it names as needed, or NULL. */
const char *exti__loaded_needed(const struct exti_loaded *lib, size_t i);
/* Its RUNPATH or RPATH, or NULL. */
const char *exti__loaded_search_path(const struct exti_loaded *lib);

enum exti_reference_kind {
    EXTI_REF_ADDRESS,    /* the slot holds the symbol's address */
    EXTI_REF_TLS_MODULE, /* the slot holds the module number of a thread-local symbol */
    EXTI_REF_TLS_OFFSET, /* the slot holds a thread-local symbol's offset from the thread pointer */
    EXTI_REF_TLS_DESCRIPTOR /* the slot and the next word are a descriptor: tls_descriptor.h */
};

/* One bound reference by name. */
struct exti_reference {
    const char *name;
    const void *symbol; /* ELF: its entry in the symbol table */
    enum exti_reference_kind kind;
    uintptr_t *slot; /* in packed structures it may lie at any address: exti__slot_value */
    uintptr_t addend;
    bool weak, defined_here;
    bool unique;  /* defined here, but one for the whole process */
    bool system;  /* from one of the system's own libraries, by that library's name (PE) */
    bool in_data; /* an initialised variable, which the program may have changed since */
};

static inline uintptr_t exti__slot_value(const struct exti_reference *ref)
{
    uintptr_t value;

    memcpy(&value, ref->slot, sizeof value);
    return value;
}

/* References to pass over: addresses in one of the ranges, each up to, not including, `hi`.  Most
 * references lead into their own library, which their slots alone tell; to read their symbols as
 * well takes longer than all else. */
struct exti_passed {
    struct {
        uintptr_t lo, hi;
    } to[2];
    size_t count; /* of those that were passed over */
};

/* Calls `each` for every reference by name, until it returns non-zero.  ELF: but for those of
 * `passed`, which may be NULL. */
int exti__loaded_references(const struct exti_loaded *lib, struct exti_passed *passed,
                            int (*each)(void *user, const struct exti_reference *ref), void *user,
                            struct exti_error *err);

/* The module number in thread-local references to this library, which has a handle; 0 if it has no
 * such storage. */
size_t exti__loaded_tls_module(const struct exti_loaded *lib);

struct exti_layout exti__loaded_layout(const struct exti_loaded *lib);

#if !defined(__APPLE__) && !defined(_WIN32)
/* The value of a symbol that it defines, in some version: its address, or the offset of a
 * thread-local variable.  0 if it defines none. */
uintptr_t exti__loaded_symbol(const struct exti_loaded *lib, const char *name);

/* The binding of a symbol that it defines, STB_*; -1 if it defines none. */
int exti__loaded_binding(const struct exti_loaded *lib, const char *name);

/* The address of the version that glibc binds a reference without version to; 0 if the newest is
 * meant, or if only the loader knows (STT_GNU_IFUNC). */
uintptr_t exti__loaded_oldest(const struct exti_loaded *lib, const char *name);

/* Whether it has references to its own thread-local variables by an offset that is the same in all
 * threads, and that have no name. */
bool exti__loaded_uses_static_tls(const struct exti_loaded *lib);

/* Calls `each` for the program and every library, until it returns non-zero.  The libraries have no
 * handle, and none is unloaded meanwhile: the loader's lock is held. */
void exti__loaded_each(int (*each)(void *user, const struct exti_loaded *lib,
                                   const struct exti_layout *layout),
                       void *user);

/* A segment, PT_LOAD, where it is mapped. */
struct exti_segment {
    uintptr_t address;
    uint64_t at;    /* its offset in the file */
    size_t size;    /* there */
    int protection; /* PROT_* */
};

/* The segment of a library, which has a handle, that has the byte at the file's offset `at`. */
bool exti__loaded_segment(const struct exti_loaded *lib, uint64_t at, struct exti_segment *out);

/* The last writable segment that would have the byte if its file part was as long as it is in
 * memory: a copy may have one more behind it, with its dynamic section. */
bool exti__loaded_variables(const struct exti_loaded *lib, uint64_t at, struct exti_segment *out);

/* The segment that follows in memory: the gABI has them in this order. */
bool exti__loaded_next_segment(const struct exti_loaded *lib, const struct exti_segment *after,
                               struct exti_segment *out);

/* How many times the process has unloaded a library. */
unsigned long long exti__unloads(void);
#endif

/* Whether some library or the program has a symbol of that name at that address. */
bool exti__address_is_symbol(uintptr_t address, const char *name);

/* ---- ELF and PE ---- */

/* The library at an address, without a handle, and its layout. */
bool exti__loaded_at(uintptr_t address, struct exti_loaded *out, struct exti_layout *layout);

/* Whether the library has some version of the symbol at the address. */
bool exti__loaded_has(const struct exti_loaded *lib, const char *name, uintptr_t address);

/* Its SONAME, or NULL. */
const char *exti__loaded_id(const struct exti_loaded *lib);

/* The address in `to`, which has a handle, of the symbol that is at `address` in `from`: another
 * copy of the same file, or another build of the library.  0 if `to` lacks it. */
uintptr_t exti__loaded_counterpart(const struct exti_loaded *from, const struct exti_loaded *to,
                                   const char *name, uintptr_t address);

#endif
