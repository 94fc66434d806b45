/* What file names tell about the CPython a file belongs to (PEP 3149, PEP 384). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void copy_text(char *out, size_t cap, const char *from, size_t n)
{
    if (n >= cap)
        n = 0;
    memcpy(out, from, n);
    out[n] = '\0';
}

/* Reads up to three digits; the count read, 0 if there are none or more. */
static size_t number(const char *s, int *out)
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

struct cli_abi cli_abi_of(const char *path)
{
    static const char key[] = ".cpython-";
    const char *name = base_name(path), *tag = strstr(name, key);
    struct cli_abi abi = {0, 0, "", ""};
    int minor;

    if (tag == NULL || !isdigit((unsigned char)tag[sizeof key - 1]))
        return abi;
    tag += sizeof key - 1;
    size_t n = number(tag + 1, &minor);
    if (n == 0)
        return abi;
    abi.major = *tag - '0';
    abi.minor = minor;
    tag += 1 + n;
    n = strspn(tag, "abcdefghijklmnopqrstuvwxyz");
    copy_text(abi.flags, sizeof abi.flags, tag, n);
    tag += n;
    if (*tag == '-')
        copy_text(abi.platform, sizeof abi.platform, tag + 1, strcspn(tag + 1, "."));
    return abi;
}

bool cli_is_abi3(const char *path)
{
    return strstr(base_name(path), ".abi3.") != NULL;
}

/* ".../Python.framework/Versions/3.11/Python", as macOS keeps it. */
static struct cli_abi framework_abi(const char *path)
{
    static const char key[] = "/Python.framework/Versions/";
    const char *version = strstr(path, key);
    struct cli_abi abi = {0, 0, "", ""};
    int major, minor;

    if (version == NULL)
        return abi;
    version += sizeof key - 1;
    size_t n = number(version, &major);
    if (n == 0 || version[n] != '.' || number(version + n + 1, &minor) == 0)
        return abi;
    abi.major = major;
    abi.minor = minor;
    return abi;
}

/* "python311.dll", "python313t.dll", "python311_d.dll". */
static struct cli_abi dll_abi(const char *name)
{
    struct cli_abi abi = {0, 0, "", ""};
    int digits;
    size_t n = number(name + 6, &digits);

    name += 6 + n;
    if (n < 2 || (strncasecmp(name, ".dll", 4) != 0 && strncasecmp(name, "t.dll", 5) != 0))
        return abi;
    abi.major = digits / (n == 2 ? 10 : 100);
    abi.minor = digits % (n == 2 ? 10 : 100);
    copy_text(abi.flags, sizeof abi.flags, name, *name == '.' ? 0 : 1);
    return abi;
}

struct cli_abi cli_abi_of_libpython(const char *path)
{
    static const char key[] = "libpython";
    const char *name = base_name(path);
    struct cli_abi abi = {0, 0, "", ""};
    int major, minor;

    if (strcmp(name, "Python") == 0)
        return framework_abi(path);
    if (strncasecmp(name, "python", 6) == 0)
        return dll_abi(name);
    if (strncmp(name, key, sizeof key - 1) != 0)
        return abi;
    name += sizeof key - 1;
    size_t n = number(name, &major);
    if (n == 0 || name[n] != '.')
        return abi;
    name += n + 1;
    n = number(name, &minor);
    if (n == 0)
        return abi;
    name += n;
    n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    if (strncmp(name + n, ".so", 3) != 0 && strncmp(name + n, ".dylib", 6) != 0)
        return abi;
    abi.major = major;
    abi.minor = minor;
    copy_text(abi.flags, sizeof abi.flags, name, n);
    return abi;
}

bool cli_abi_fits(const struct cli_abi *want, const struct cli_abi *have)
{
    return want->major == 0 || have->major == 0 ||
           (want->major == have->major && want->minor == have->minor &&
            strcmp(want->flags, have->flags) == 0);
}
