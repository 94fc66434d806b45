#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/find/contexts.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

static const char help[] =
    "usage: extisolate clean [--trust-dir] CTXDIR...\n"
    "\n"
    "Removes the copies and the manifest from a context directory, or from each context directory\n"
    "in CTXDIR, and then the directory itself if it is empty.  Files that extisolate did not make\n"
    "stay.  A directory without a manifest is refused.  Sources are never touched.\n"
    "\n"
    "options:\n"
    "  --trust-dir  remove what the manifest names though others can change CTXDIR, or a folder\n"
    "               above it, while that is done\n"
    "  -h, --help   show this\n"
    "\n"
    "examples:\n"
    "  extisolate clean ctx\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

/* What clean left of `dir`, which may be a symbolic link to the directory. */
static const char *outcome(const char *dir)
{
    struct cli_stat st;

    if (cli_stat(dir, &st))
        return ": copies removed; other files are in it, so it stays";
    if (cli_is_link(dir))
        return ": removed; the symbolic link to it stays";
    return cli_exists(dir) ? ": copies removed; whether it is left cannot be looked up"
                           : ": removed";
}

static int clean_one(void *user, const char *dir)
{
    const bool *trust = user;
    struct exti_error err;

    /* Others could put a link to another folder in the place of this one. */
    if (!*trust && exti_dir_trust(dir, &err) == EXTI_E_TRUST)
        return cli_error(&err, dir);
    if (exti_dir_clean(dir, &err) != 0)
        return cli_error(&err, dir);
    cli_put(stdout, dir);
    puts(outcome(dir));
    return CLI_OK;
}

static int clean(const char *dir, bool trust)
{
    bool context = cli_is_context(dir);
    int status = cli_each_context(dir, clean_one, &trust);

    /* The directory of the contexts goes with the last of them.  ENOENT: another process was
     * quicker. */
    if (status == CLI_OK && !context && !cli_remove_dir(dir) && errno != ENOTEMPTY &&
        errno != EEXIST && errno != ENOENT)
        status = cli_fail(dir, "cannot remove the empty directory: %s", strerror(errno));
    return status;
}

static int cmd_clean(int argc, char **argv)
{
    bool trust = false;
    const struct cli_option options[] = {{.name = "trust-dir", .flag = &trust}, {0}};
    int status = cli_parse("clean", argc, argv, options, help);

    if (status != CLI_OK)
        return status;
    if (optind == argc)
        return cli_usage("clean", "missing CTXDIR");
    for (int i = optind; i < argc; i++) {
        int one = clean(argv[i], trust);
        if (one > status)
            status = one;
    }
    return status;
}

const struct cli_command cli_command_clean = {"clean", "remove the copies from a context directory",
                                              cmd_clean};
