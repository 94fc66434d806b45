/* Interfaces between the sources of the host program. */
#ifndef EXTI_TEST_WINE_HOST_H
#define EXTI_TEST_WINE_HOST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { MOST_WORDS = 4 };

struct command {
    char line[8192], out[16384];
    char *word[MOST_WORDS];
    size_t words;
};

void report(struct command *c, const char *format, ...) __attribute__((format(gnu_printf, 2, 3)));
void windows_path(const char *path, wchar_t *out, size_t cap);
HMODULE module_of(const char *name);
FARPROC find(struct command *c, const char *module, const char *symbol);

void walk(struct command *c);
void python(struct command *c);
void python_exec(struct command *c);
void python_stop(struct command *c);

#endif
