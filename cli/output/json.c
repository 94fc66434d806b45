#include "cli/output/json.h"

#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

/* jansson 2.14 calls a token without memory a syntax error, and drops characters and keys. */
void cli_json_start(void)
{
    json_set_alloc_funcs(cli_alloc, free);
}

json_t *cli_json_text(const char *text)
{
    static const char hex[] = "0123456789abcdef";

    if (text == NULL)
        return json_null();
    char *utf8 = cli_alloc(strlen(text) * 4 + 1), *to = utf8;
    while (*text != '\0') {
        uint32_t code;
        size_t n = cli_utf8(text, &code);
        if (n != 0) {
            memcpy(to, text, n);
            to += n;
            text += n;
        } else {
            unsigned char c = (unsigned char)*text++;
            *to++ = '\\';
            *to++ = 'x';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to = '\0';
    json_t *value = json_string(utf8);
    free(utf8);
    return value;
}

json_t *cli_json_error(const struct exti_error *err, const char *file)
{
    json_t *offset =
        err->offset != EXTI_NO_OFFSET ? json_integer((json_int_t)err->offset) : json_null();

    return json_pack("{s:s, s:o, s:o, s:i, s:o}", "code", exti_code_name(err->code), "file",
                     cli_json_text(err->file[0] != '\0' ? err->file : file), "offset", offset,
                     "os_error", err->os_error, "message", cli_json_text(err->message));
}

int cli_json_print(json_t *value)
{
    int rc = json_dumpf(value, stdout, JSON_INDENT(2));
    json_decref(value);
    putchar('\n');
    return rc == 0 ? CLI_OK : cli_fail("standard output", "cannot write the JSON");
}
