#include "loader/process/name_filter.h"

#include "loader/process/gnu_hash_elf.h"
#include "loader/process/linkmap.h"

struct filter {
    struct exti_filtered_name *names;
    size_t count;
    bool (*passes_over)(uintptr_t address);
};

static int filter_by(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    struct filter *f = user;

    if (f->passes_over(layout->lo) || (lib->gnu_hash && !lib->gnu_hash[0]))
        return 0;
    for (size_t i = 0; i < f->count; i++) {
        struct exti_filtered_name *n = &f->names[i];

        n->may = n->may || (lib->gnu_hash ? exti__gnu_hash_next(lib->gnu_hash, n->hash, 0) != 0
                                          : exti__loaded_defines(lib, n->name));
    }
    return 0;
}

void exti__filter_names(struct exti_filtered_name *names, size_t count,
                        bool (*passes_over)(uintptr_t address))
{
    struct filter f = {names, count, passes_over};

    for (size_t i = 0; i < count; i++) {
        names[i].hash = exti__gnu_hash(names[i].name);
        names[i].may = false;
    }
    if (count)
        exti__loaded_each(filter_by, &f);
}
