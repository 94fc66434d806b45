/* What a Mach-O copy still shares with the rest of the process. */
#ifndef CLI_REPORT_MACHO_SHARED_H
#define CLI_REPORT_MACHO_SHARED_H

#include <jansson.h>

/* JSON arrays of names, empty for other formats. */
struct cli_shared {
    json_t *flat;    /* symbols that are still looked up in every library */
    json_t *carried; /* architectures that were copied unchanged */
};
struct cli_shared cli_shared_of(const char *original, const char *copy);
void cli_shared_print(const struct cli_shared *s); /* one line each on stdout, if not empty */
void cli_shared_free(struct cli_shared *s);

#endif
