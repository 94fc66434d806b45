/* The common part of all extensions.  The test calls ext_init, which returns the number of modules
 * that its libpython has seen; ext_check, which returns 0 or the line of the failed check; and
 * ext_modules. */
#ifndef EXT_H
#define EXT_H

#include "libc.h"
#include "pystub.h"

#ifdef __cplusplus
extern "C" {
#endif

int ext_init(void);
int ext_check(void);
int ext_modules(void);
int ext_own(void); /* how many copies of the extension share the extension's private state */
extern const char __dso_handle[];
int PyOptional_There(void) __attribute__((weak_import));
int PyOptional_Absent(void) __attribute__((weak_import));

#ifdef __cplusplus
}
#endif

#define MUST(x)                                                                                    \
    if (!(x))                                                                                      \
    return __LINE__

/* Addresses in initialised data: of the library's and of our own. */
static struct py_type own_type = {"own", &PyType_Type, Py_Twice};
static int *const second = _Py_Table + 2;
static struct py_type *volatile own_pointer = &own_type;
static const char *const names[] = {"zero", "one", 0};
static int (*volatile create)(const char *) = PyModule_Create;
static int constructed, seen_by_constructor;

__attribute__((constructor)) static void construct(void)
{
    constructed++;
    seen_by_constructor = Py_Twice(21) + (own_type.call == Py_Twice);
}

/* The library and our references must agree on the addresses of its symbols. */
static int check_references(void)
{
    MUST(Py_Address(0) == &PyType_Type);
    MUST(Py_Address(1) == _Py_Table);
    MUST(Py_Address(2) == &Py_Modules);
    MUST(Py_Address(3) == (const void *)PyModule_Create);
    MUST(Py_Address(4) == (const void *)Py_Twice);
    MUST(Py_Address(3) == (const void *)create);
    MUST(own_pointer->meta == &PyType_Type && own_pointer->call(4) == 8);
    MUST(own_pointer == &own_type && strcmp(own_pointer->name, "own") == 0);
    MUST(second == _Py_Table + 2 && *second == 102);
    MUST(strcmp(names[1], "one") == 0 && names[2] == 0);
    MUST(PyOptional_There && PyOptional_There() == 7);
    MUST(!PyOptional_Absent);
    return 0;
}

static uint32_t word(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t words(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* Finds a section of its own image, like getsectiondata(): the header gives the distance by which
 * the image was moved, and the places of its sections. */
static const char *const needle = "a string in __cstring to be found";

static int check_header(void)
{
    const char *command = __dso_handle + 32, *section;
    uint64_t text = 0, found = 0;

    MUST(word(__dso_handle) == 0xfeedfacf);
    for (uint32_t i = word(__dso_handle + 16); i; i--, command += word(command + 4)) {
        if (word(command) != 0x19 || strcmp(command + 8, "__TEXT") != 0)
            continue;
        text = words(command + 24);
        section = command + 72;
        for (uint32_t n = word(command + 64); n; n--, section += 80) {
            const char *at = __dso_handle + (words(section + 32) - text);

            if (strcmp(section, "__cstring") == 0 && needle >= at &&
                needle < at + words(section + 40))
                found++;
        }
    }
    MUST(found == 1);
    return 0;
}

static int check_common(void)
{
    int line = check_references();

    MUST(constructed == 1 && seen_by_constructor == 43);
    return line ? line : check_header();
}

/* For extensions with no checks of their own. */
#ifndef EXT_CHECK
#define EXT_CHECK 0
#endif

int ext_init(void)
{
    char *name = (char *)malloc(8);

    memcpy(name, "ext", 4);
    PyModule_Create(name);
    free(name);
    return Py_Modules;
}

int ext_check(void)
{
    int line = check_common();

    return line ? line : EXT_CHECK;
}

int ext_modules(void)
{
    return Py_Modules;
}

#endif
