/* Describes PE files: which libraries they import from, and which of those a copy replaces. */
#ifndef CLI_REPORT_PE_H
#define CLI_REPORT_PE_H

#include <jansson.h>

#include <extisolate.h>

/* `api` is a NULL-ended list of the API library's names; NULL stands for Python's. */
void cli_pe_print_libraries(const struct exti_image *im, const char *const *api);
void cli_pe_print_layout(const struct exti_image_info *info);
void cli_pe_print_flags(const struct exti_image *im, const struct exti_image_info *info);
json_t *cli_pe_json(const struct exti_image *im, const char *const *api);

/* Where `im` has the name of an API library as text, by which it may look it up at run time: JSON
 * objects with "name" and "offset". */
json_t *cli_pe_mentions(const struct exti_image *im, const char *const *api);
json_t *cli_pe_mentions_in(const char *path, const char *const *api); /* empty unless PE */

#endif
