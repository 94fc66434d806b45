/* The API symbols of a file. */
#ifndef CLI_REPORT_SYMBOLS_H
#define CLI_REPORT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

/* Which names are the API: those that the library at `path` exports or, without one, every name
 * that begins with Py or _Py. */
struct cli_api {
    const char *path;
    struct exti_image *im; /* owns the strings below */
    const char **names;    /* sorted */
    size_t count;
    const char *libraries[3]; /* file name and id of that library, NULL-ended */
};
/* Reads api->path unless it is NULL: CLI_OK, or CLI_FAILED with a message. */
int cli_api_load(struct cli_api *api);
void cli_api_free(struct cli_api *api);

/* The NULL-ended names of the API library, or NULL, which stands for Python's. */
const char *const *cli_api_libraries(const struct cli_api *api);

struct cli_names {
    const char **items; /* sorted; the array is the caller's to free, the strings are the image's */
    size_t count;
};
/* The API symbols that `im` exports, or those that it imports. */
struct cli_names cli_api_symbols(const struct exti_image *im, const struct cli_api *api,
                                 bool exports);

/* How many API symbols a Mach-O file binds to `library`, an index from 1 or EXTI_BIND_*. */
size_t cli_count_bound(const struct exti_image *im, const struct cli_api *api, int32_t library);

/* How many symbols have one definition for the whole process. */
size_t cli_count_unique(const struct exti_image *im);

#endif
