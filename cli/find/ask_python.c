/* The interpreter runs isolated (-I, -S), so that neither the environment nor the current folder
 * nor a .pth file influences the answer. */
#include "cli/find/ask_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"

#define ANSWER_MAX 65536
#define PATIENCE_MS 20000

/* On Windows, sys.abiflags does not exist before 3.14, and python311.dll is in the prefix. */
static const char question[] =
    "import json, sys, sysconfig\n"
    "v = lambda name: sysconfig.get_config_var(name) or ''\n"
    "flags = 't' * bool(v('Py_GIL_DISABLED')) + 'd' * hasattr(sys, 'gettotalrefcount')\n"
    "lib = sys.base_exec_prefix + '/lib'\n"
    "print(json.dumps({'name': sys.implementation.name, 'major': sys.version_info[0],\n"
    "    'minor': sys.version_info[1], 'flags': getattr(sys, 'abiflags', flags),\n"
    "    'exe': sys.executable or '', 'libs': [v('INSTSONAME'), v('LDLIBRARY')],\n"
    "    'dirs': [sys.base_exec_prefix] if sys.platform == 'win32' else\n"
    "            [v('LIBDIR'), v('LIBDIR') + '/' + v('MULTIARCH'), lib, lib + '64']}))\n";

json_t *cli_ask_python(const char *python, bool *is_there)
{
    char *name = cli_copy_text(python), isolated[] = "-I", no_site[] = "-S", dash_c[] = "-c",
         code[sizeof question];
    char *argv[] = {name, NULL, NULL, NULL, NULL, NULL, NULL};
    size_t n = 0, argc = 1;
    json_t *answer = NULL;
    char *buf = cli_alloc(ANSWER_MAX);

    memcpy(code, question, sizeof question);
    /* "py -3.11" has an option; a blank in a path is part of the path. */
    char *blank = cli_base_name(name) == name ? strchr(name, ' ') : NULL;
    if (blank != NULL) {
        *blank = '\0';
        argv[argc++] = blank + 1;
    }
    argv[argc++] = isolated;
    argv[argc++] = no_site;
    argv[argc++] = dash_c;
    argv[argc] = code;
    *is_there = true;
    if (cli_run_program(argv, PATIENCE_MS, buf, ANSWER_MAX, &n))
        answer = json_loadb(buf, n, 0, NULL);
    else
        *is_there = errno != ENOENT && errno != ENOTDIR && errno != EACCES;
    free(buf);
    free(name);
    return answer;
}
