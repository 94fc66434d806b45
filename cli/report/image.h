/* This room describes files, for people and as JSON: what `inspect` prints, what hazards copies
 * have, what a copy still shares.  Commands and tree/ call it. */
#ifndef CLI_REPORT_IMAGE_H
#define CLI_REPORT_IMAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/report/symbols.h"

struct cli_image_opts {
    struct cli_api api;
    bool symbols; /* list the API symbols */
    int contexts; /* as in hazards.h */
};

void cli_image_print(const char *file, const struct exti_image *im, const struct cli_image_opts *o);

/* An object that describes the file; "slices" has every architecture of a universal Mach-O file,
 * the rest of the object then describes the first one that can be rewritten. */
json_t *cli_image_json(const char *file, const struct exti_image *im,
                       const struct cli_image_opts *o);

#endif
