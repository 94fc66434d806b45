#include "loader/image/symbol_names.h"

#include <stddef.h>
#include <string.h>

static bool is_among(const char *const *names, size_t count, const char *symbol)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    return false;
}

bool exti__is_file_symbol(const char *symbol)
{
    static const char *const names[] = {
        "_init",       "_fini",      "_start",       "main",
        "_edata",      "_end",       "_etext",       "__bss_start",
        "edata",       "end",        "etext",        "_IO_stdin_used",
        "_DYNAMIC",    "data_start", "__data_start", "_GLOBAL_OFFSET_TABLE_",
        "__dso_handle"};

    return is_among(names, sizeof names / sizeof *names, symbol);
}

bool exti__is_allocation_function(const char *symbol)
{
    static const char *const names[] = {"malloc",        "calloc",   "realloc",
                                        "reallocarray",  "free",     "cfree",
                                        "aligned_alloc", "memalign", "posix_memalign",
                                        "valloc",        "pvalloc",  "malloc_usable_size"};
    /* Itanium C++ ABI: operator new, new[], delete and delete[] */
    static const char *const operators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(symbol, operators[i], 4) == 0)
            return true;
    return is_among(names, sizeof names / sizeof *names, symbol);
}
