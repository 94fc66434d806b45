#include "cli/args/option.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/output/message.h"

#define WORD_MAX 32

/* Damerau-Levenshtein distance: how many letters to add, drop, change or swap to turn `a` into
 * `b`. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), d[WORD_MAX + 1][WORD_MAX + 1];

    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *cli_nearest(const char *word, const char *const *names)
{
    const char *near = NULL;
    size_t least = WORD_MAX;

    for (; *names != NULL; names++) {
        size_t d = distance(word, *names);
        if (d <= 1 + strlen(*names) / 4 && d < least && d < strlen(word)) {
            least = d;
            near = *names;
        }
    }
    return near;
}

static const struct option *find_option(const struct option *longs, const char *name, size_t n)
{
    for (; longs->name != NULL; longs++)
        if (strncmp(longs->name, name, n) == 0 && longs->name[n] == '\0')
            return longs;
    return NULL;
}

static int unknown_long(const char *command, const char *given, const struct option *longs)
{
    const char *names[WORD_MAX];
    char word[WORD_MAX];
    size_t n = 0, len = strcspn(given, "=");

    for (; n < WORD_MAX - 1 && longs[n].name != NULL; n++)
        names[n] = longs[n].name;
    names[n] = NULL;

    const char *near = NULL;
    if (len < sizeof word) {
        memcpy(word, given, len);
        word[len] = '\0';
        near = cli_nearest(word, names);
    }
    if (near != NULL)
        cli_usage(command, "unknown option '--%.*s'; did you mean '--%s'?", (int)len, given, near);
    else
        cli_usage(command,
                  "unknown option '--%.*s' (for a file of that name, write './--%.*s' or "
                  "put '--' before it)",
                  (int)len, given, (int)len, given);
    return '?';
}

static bool has_value(const struct option *longs, int value)
{
    while (longs->name != NULL && longs->val != value)
        longs++;
    return longs->name != NULL;
}

/* getopt_long with this program's messages: '?' after printing a usage error. */
static int next_option(const char *command, int argc, char **argv, const char *shorts,
                       const struct option *longs)
{
    opterr = 0;
    int c = getopt_long(argc, argv, shorts, longs, NULL);
    if (c != '?' && c != ':')
        return c;

    /* For a long option, argv[optind - 1] is the faulty one, and optopt is 0 unless its name is
     * known.  Within a group of short options, argv[optind - 1] is the argument before the group.
     * mingw returns ':' also for a value that an option does not take. */
    const char *word = optind > 0 ? argv[optind - 1] : "";
    bool is_long = strncmp(word, "--", 2) == 0 && (optopt == 0 || has_value(longs, optopt));
    if (c == ':' && !(is_long && strchr(word, '=') != NULL)) {
        if (is_long)
            cli_usage(command, "'%s' needs a value", word);
        else
            cli_usage(command, "'-%c' needs a value", optopt);
    } else if (is_long && optopt != 0) {
        size_t len = strcspn(word + 2, "=");
        const struct option *o = find_option(longs, word + 2, len);
        cli_usage(command, "'--%s' takes no value", o != NULL ? o->name : word + 2);
    } else if (is_long) {
        unknown_long(command, word + 2, longs);
    } else {
        cli_usage(command,
                  "unknown option '-%c' (for a file whose name begins with '-', put '--' "
                  "before it)",
                  optopt);
    }
    return '?';
}

static int refuse_empty(const char *command, int argc, char **argv, int from)
{
    for (int i = from; i < argc; i++)
        if (argv[i][0] == '\0')
            return cli_usage(command,
                             "argument %d is empty, but must be a file name: "
                             "is a shell variable unset?",
                             i - from + 1);
    return CLI_OK;
}

static int check_value(const char *command, const char *option, const char *value)
{
    if (*value == '\0')
        return cli_usage(command, "--%s is empty: is a shell variable unset?", option);
    return CLI_OK;
}

static int add_value(struct cli_values *v, const char *command, const char *option,
                     const char *value)
{
    if (check_value(command, option, value) != CLI_OK)
        return CLI_USAGE;
    v->items = cli_resize(v->items, (v->count + 1) * sizeof *v->items);
    v->items[v->count++] = value;
    return CLI_OK;
}

static int parse_count(const char *command, const char *option, const char *text, int *out)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (errno != 0 || *text == '\0' || *end != '\0' || n < 1 || n > CLI_CONTEXTS_MAX)
        return cli_usage(command, "--%s takes a number from 1 to %d, not '%s'", option,
                         CLI_CONTEXTS_MAX, text);
    *out = (int)n;
    return CLI_OK;
}

/* ---- tables of options ----------------------------------------------------------------------- */

static bool takes_value(const struct cli_option *o)
{
    return o->flag == NULL && o->bits == NULL;
}

static int take_option(const struct cli_option *o, const char *command, const char *value)
{
    if (o->file != NULL && check_value(command, o->name, value) != CLI_OK)
        return CLI_USAGE;
    if (o->count != NULL)
        return parse_count(command, o->name, value, o->count);
    if (o->values != NULL)
        return add_value(o->values, command, o->name, value);
    if (o->take != NULL)
        return o->take(o->to, command, value);
    if (o->flag != NULL)
        *o->flag = true;
    else if (o->bits != NULL)
        *o->bits |= o->bit;
    else
        *(o->file != NULL ? o->file : o->text) = value;
    return CLI_OK;
}

/* For getopt_long, a long option's value is FIRST_LONG and its row, a letter's itself. */
enum { OPTIONS_MAX = 24, FIRST_LONG = 256 };

struct tables {
    struct option longs[OPTIONS_MAX + 2];
    char shorts[2 * OPTIONS_MAX + 4];
    bool stops; /* at the first argument */
};

static void fill_tables(const struct cli_option *options, struct tables *t)
{
    size_t longs = 0, shorts = 0;

    *t = (struct tables){.stops = false};
    for (size_t i = 0; options[i].name != NULL || options[i].letter != 0; i++)
        t->stops = t->stops || options[i].last;
    if (t->stops)
        t->shorts[shorts++] = '+';
    t->shorts[shorts++] = ':';
    t->shorts[shorts++] = 'h';
    for (int i = 0; options[i].name != NULL || options[i].letter != 0; i++) {
        const bool value = takes_value(&options[i]);

        assert(i < OPTIONS_MAX);
        if (options[i].name != NULL)
            t->longs[longs++] = (struct option){
                options[i].name, value ? required_argument : no_argument, NULL, FIRST_LONG + i};
        if (options[i].letter != 0)
            t->shorts[shorts++] = options[i].letter;
        if (options[i].letter != 0 && value)
            t->shorts[shorts++] = ':';
    }
    t->longs[longs] = (struct option){"help", no_argument, NULL, 'h'};
}

static const struct cli_option *option_of(const struct cli_option *options, int c)
{
    if (c >= FIRST_LONG)
        return &options[c - FIRST_LONG];
    while (options->letter != c)
        options++;
    return options;
}

int cli_parse(const char *command, int argc, char **argv, const struct cli_option *options,
              const char *help)
{
    struct tables t;
    bool last = false;
    int c;

    fill_tables(options, &t);
    while (!last && (c = next_option(command, argc, argv, t.shorts, t.longs)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return CLI_HELPED;
        }
        if (c == '?')
            return CLI_USAGE;
        const struct cli_option *o = option_of(options, c);
        int status = take_option(o, command, optarg);
        if (status != CLI_OK)
            return status;
        last = o->last;
    }
    return t.stops ? CLI_OK : refuse_empty(command, argc, argv, optind);
}

int cli_check_name(const char *command, const char *name, size_t most)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const size_t n = strlen(name);

    if (n > 0 && n <= most && strspn(name, allowed) == n)
        return CLI_OK;
    return cli_usage(command, "--name takes 1 to %zu letters, digits, '-' and '_', not '%s'", most,
                     name);
}
