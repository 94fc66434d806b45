/* The hazards that the library finds in files: of one file, or of many by kind. */
#ifndef CLI_REPORT_HAZARDS_H
#define CLI_REPORT_HAZARDS_H

#include <jansson.h>
#include <stddef.h>

#include <extisolate.h>

/* `contexts`, here and below: how many are planned, 0 for an unknown number.  Where there is not
 * room for so many, what would make room is printed too. */
void cli_hazards_print(const struct exti_image *im, int contexts); /* inspect's lines */
json_t *cli_hazards_json(const struct exti_image *im, int contexts);

struct cli_hazards;
struct cli_hazards *cli_hazards_new(void);    /* NULL when out of memory */
void cli_hazards_free(struct cli_hazards *h); /* NULL ok */
void cli_hazards_add(struct cli_hazards *h, const char *file, const struct exti_image *im);
void cli_hazards_print_all(const struct cli_hazards *h, int contexts);
json_t *cli_hazards_all_json(const struct cli_hazards *h, int contexts);

/* Notes the hazards that copies in `dir` still have, those that limit the number of contexts or
 * matter on unload: one line each on stdout or, with `notes`, appended to that JSON array. */
void cli_hazards_note(const struct cli_hazards *h, const char *dir, json_t *notes);

/* Adds the libraries in a folder and below it, skipping symbolic links (hazards_tree.c).  *count is
 * how many there are.  CLI_OK, or CLI_FAILED with messages when some could not be read. */
int cli_hazards_add_tree(struct cli_hazards *h, const char *dir, size_t *count);

#endif
