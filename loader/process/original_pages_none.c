/* Windows has no mapping of a file over a part of a library, and dyld's is not tried. */
#include "loader/process/original_pages.h"

bool exti__can_map_originals(void)
{
    return false;
}

bool exti__can_map_code(const char *path)
{
    (void)path;
    return false;
}

int exti__map_original(const struct exti_loaded *lib, const char *original,
                       const struct exti_file_id *id, const struct exti_unread *left_out,
                       bool tables, struct exti_error *err)
{
    (void)lib;
    (void)original;
    (void)id;
    (void)left_out;
    (void)tables;
    (void)err;
    return 0;
}
