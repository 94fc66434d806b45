#include "cli/find/abi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/os/path.h"

static void copy_part(char *out, size_t cap, const char *from, size_t n)
{
    if (n >= cap)
        n = 0;
    memcpy(out, from, n);
    out[n] = '\0';
}

/* Parses one to three digits and returns how many; 0 for none or more. */
static size_t parse_number(const char *s, int *out)
{
    size_t n = 0;
    int v = 0;

    for (; isdigit((unsigned char)s[n]); n++) {
        if (n == 3)
            return 0;
        v = v * 10 + (s[n] - '0');
    }
    *out = v;
    return n;
}

/* Parses "311", in which the major version has one digit.  Returns its length, 0 on a mismatch. */
static size_t parse_version(const char *s, struct cli_abi *abi)
{
    size_t n = isdigit((unsigned char)s[0]) ? parse_number(s + 1, &abi->minor) : 0;

    abi->major = n != 0 ? s[0] - '0' : 0;
    return n != 0 ? n + 1 : 0;
}

/* "311t-win_amd64" of "foo_d.cp311t-win_amd64.pyd", or NULL; *debug says whether there is a
 * "_d". */
static const char *windows_tag(const char *name, bool *debug)
{
    const char *tag = strstr(name, ".cp");

    if (tag == NULL || strstr(tag, "-win") == NULL)
        return NULL;
    *debug = tag - name > 2 && strncmp(tag - 2, "_d", 2) == 0;
    return tag + 3;
}

struct cli_abi cli_abi_of(const char *path)
{
    static const char key[] = ".cpython-";
    const char *name = cli_base_name(path), *tag = strstr(name, key);
    struct cli_abi abi = {0, 0, "", ""};
    bool debug = false;

    tag = tag != NULL ? tag + sizeof key - 1 : windows_tag(name, &debug);
    size_t n = tag != NULL ? parse_version(tag, &abi) : 0;
    if (n == 0)
        return (struct cli_abi){0, 0, "", ""};
    tag += n;
    n = strspn(tag, "abcdefghijklmnopqrstuvwxyz");
    copy_part(abi.flags, sizeof abi.flags - 1, tag, n);
    if (debug)
        memcpy(abi.flags + strlen(abi.flags), "d", sizeof "d");
    tag += n;
    if (*tag == '-')
        copy_part(abi.platform, sizeof abi.platform, tag + 1, strcspn(tag + 1, "."));
    return abi;
}

bool cli_is_abi3(const char *path)
{
    return strstr(cli_base_name(path), ".abi3.") != NULL;
}

/* ".../Python.framework/Versions/3.11/Python" on macOS. */
static struct cli_abi framework_abi(const char *path)
{
    static const char key[] = "/Python.framework/Versions/";
    const char *version = strstr(path, key);
    struct cli_abi abi = {0, 0, "", ""};
    int major, minor;

    if (version == NULL)
        return abi;
    version += sizeof key - 1;
    size_t n = parse_number(version, &major);
    if (n == 0 || version[n] != '.' || parse_number(version + n + 1, &minor) == 0)
        return abi;
    abi.major = major;
    abi.minor = minor;
    return abi;
}

/* `name` is what follows "python" in "python311.dll", "python313t.dll", "python311_d.dll". */
static struct cli_abi dll_abi(const char *name)
{
    struct cli_abi abi = {0, 0, "", ""};
    size_t n = parse_version(name, &abi);

    name += n;
    bool threaded = tolower((unsigned char)*name) == 't';
    name += threaded;
    bool debug = strncasecmp(name, "_d", 2) == 0;
    name += debug ? 2 : 0;
    if (n == 0 || strcasecmp(name, ".dll") != 0)
        return (struct cli_abi){0, 0, "", ""};
    snprintf(abi.flags, sizeof abi.flags, "%s%s", threaded ? "t" : "", debug ? "d" : "");
    return abi;
}

struct cli_abi cli_abi_of_libpython(const char *path)
{
    static const char key[] = "libpython";
    const char *name = cli_base_name(path);
    struct cli_abi abi = {0, 0, "", ""};
    int major, minor;

    if (strcmp(name, "Python") == 0)
        return framework_abi(path);
    if (strncasecmp(name, "python", 6) == 0)
        return dll_abi(name + 6);
    if (strncmp(name, key, sizeof key - 1) != 0)
        return abi;
    name += sizeof key - 1;
    size_t n = parse_number(name, &major);
    if (n == 0 || name[n] != '.')
        return abi;
    name += n + 1;
    n = parse_number(name, &minor);
    if (n == 0)
        return abi;
    name += n;
    n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    if (strncmp(name + n, ".so", 3) != 0 && strncmp(name + n, ".dylib", 6) != 0)
        return abi;
    abi.major = major;
    abi.minor = minor;
    copy_part(abi.flags, sizeof abi.flags, name, n);
    return abi;
}

int cli_libpython_abi(const char *path, struct cli_abi *out, struct exti_error *err)
{
    struct exti_image *im = NULL;
    struct exti_image_info info = {.size = sizeof info};
    int rc = exti_inspect(path, &im, err);

    if (rc != 0)
        return rc;
    exti_image_info(im, &info);
    *out = cli_abi_of_libpython(info.id != NULL ? info.id : path);
    exti_image_free(im);
    return 0;
}

bool cli_abi_equal(const struct cli_abi *a, const struct cli_abi *b)
{
    return a->major == b->major && a->minor == b->minor && strcmp(a->flags, b->flags) == 0;
}

bool cli_abi_fits(const struct cli_abi *want, const struct cli_abi *have)
{
    return want->major == 0 || have->major == 0 || cli_abi_equal(want, have);
}
