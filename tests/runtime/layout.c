/* Prints the runtime's PyConfig table, which test_layout.sh compares with CPython's headers, and
 * tests the guard against builds that the table does not describe.
 *
 *   layout MINOR FREE_THREADED DEBUG    print `member offset` lines and the size
 *   layout                              test the guard */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pyconfig.h"

static void print_member(void *user, const char *name, enum pyrt_kind kind, size_t offset)
{
    (void)user;
    (void)kind;
    printf("%s %zu\n", name, offset);
}

static struct pyrt_build build;
static size_t init_size;
static const char *spoilt; /* the member that gets another default */

static void fake_init(void *config)
{
    static const char *const ones[] = {
        "use_environment",     "install_signal_handlers", "parse_argv",        "site_import",
        "write_bytecode",      "user_site_directory",     "configure_c_stdio", "buffered_stdio",
        "pathconfig_warnings", "_install_importlib",      "_init_main"};

    memset(config, 0, init_size);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        *(int *)pyrt_field(config, build, PYRT_INT, ones[i]) = 1;
    if (spoilt)
        *(int *)pyrt_field(config, build, PYRT_INT, spoilt) += 1;
}

static void fake_preinit(void *config)
{
    struct pyrt_preconfig *pre = config;

    memset(config, 0, init_size);
    if (init_size < sizeof *pre)
        return;
    pre->use_environment = pre->configure_locale = pre->parse_argv = 1;
}

static void report(const char *name, int good)
{
    printf("%s %s\n", good ? "ok" : "not ok", name);
}

static void test_guard(void)
{
    union pyrt_config config;
    struct pyrt_preconfig pre;
    struct exti_error err;

    build = (struct pyrt_build){12, 0, 0};
    init_size = pyrt_config_size(build);
    report("guard_takes_a_stock_config", pyrt_config_init(&config, build, fake_init, &err) == 0);
    init_size += 8;
    report("guard_refuses_a_longer_config",
           pyrt_config_init(&config, build, fake_init, &err) == EXTI_E_LOAD &&
               strstr(err.message, "PyConfig of this CPython 3.12 build"));
    init_size -= 16;
    report("guard_refuses_a_shorter_config",
           pyrt_config_init(&config, build, fake_init, &err) == EXTI_E_LOAD);
    init_size += 8;
    spoilt = "site_import";
    report("guard_refuses_another_default",
           pyrt_config_init(&config, build, fake_init, &err) == EXTI_E_LOAD &&
               strstr(err.message, "PyConfig.site_import"));
    init_size = sizeof pre;
    report("guard_takes_a_stock_preconfig", pyrt_preconfig_init(&pre, fake_preinit, &err) == 0);
    init_size -= 4;
    report("guard_refuses_a_shorter_preconfig",
           pyrt_preconfig_init(&pre, fake_preinit, &err) == EXTI_E_LOAD);
    report("no_member_no_field", !pyrt_field(&config, build, PYRT_INT, "_use_peg_parser") &&
                                     !pyrt_field(&config, build, PYRT_INT, "no_such_member"));
    report("a_field_has_its_kind", pyrt_field(&config, build, PYRT_WSTR, "home") &&
                                       !pyrt_field(&config, build, PYRT_INT, "home"));
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        test_guard();
        return 0;
    }
    build = (struct pyrt_build){atoi(argv[1]), atoi(argv[2]), atoi(argv[3])};
    pyrt_fields(build, print_member, NULL);
    printf("sizeof %zu\n", pyrt_config_size(build));
    return 0;
}
