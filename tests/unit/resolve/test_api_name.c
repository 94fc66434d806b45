#include "tests/support/exti_test.h"

#include "loader/resolve/api_name.h"

static void names_of_api_libraries_are_recognised(void **state)
{
    static const struct {
        const char *name, *file, *id;
        bool is;
    } rows[] = {
        {"libapi.so.1", "/opt/libapi.so.1.2", "libapi.so.1", true},
        {"/x/libapi.so.1", "/opt/libapi.so.1.2", "libapi.so.1", true},
        {"libapi.so.1.2", "/opt/libapi.so.1.2", NULL, true},
        {"libapi.so", "/opt/libapi.so.1.2", "libapi.so.1", false},
        {"libpython3.so", "/opt/libpython3.11.so.1.0", "libpython3.11.so.1.0", true},
        {"libpython3.so", "/opt/libpython2.7.so.1.0", NULL, false},
        {"libpython3.so", "/opt/libapi.so", NULL, false},
        {"libpython3.10.so.1.0", "/opt/libpython3.11.so.1.0", "libpython3.11.so.1.0", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (exti__is_api_name(rows[i].name, rows[i].file, rows[i].id) != rows[i].is)
            fail_msg("%s and %s", rows[i].name, rows[i].file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_api_libraries_are_recognised),
    };

    return cmocka_run_group_tests_name("resolve/api_name", tests, NULL, NULL);
}
