/* Memory for the program.  One answer that lacks a line, or an empty name in it, is worse than
 * none: where the program itself is out of memory, it says so and ends with CLI_FAILED.  What is
 * on the disk then is as sound as after a kill. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __GNUC__
#define CLI_NO_RETURN __attribute__((noreturn))
#else
#define CLI_NO_RETURN
#endif

CLI_NO_RETURN void cli_out_of_memory(void);

/* As in the C library, but never NULL; free() them. */
void *cli_alloc(size_t n);
void *cli_zeroed(size_t count, size_t n);
void *cli_resize(void *p, size_t n);
char *cli_copy_text(const char *text);

/* `p`, which may be NULL for any reason but ENOMEM in errno. */
void *cli_unless_full(void *p);

/* Whether a call of the library succeeded.  To be used where other failures are expected, and not
 * reported. */
bool cli_worked(int rc);

#endif
