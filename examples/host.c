#include <extisolate/python.h>
#include <stdio.h>

static int failed(const struct exti_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", extipy_code_name(err->code), err->file, err->message);
    return 1;
}

int main(void)
{
    double data[] = {1, 2, 3, 4};
    struct extipy_buffer_info info = {
        .size = sizeof info, .data = data, .length = sizeof data, .item_size = 8, .format = "d"};
    struct extipy_call call = {.size = sizeof call, .function = "__main__:scale"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *values, *result;
    struct extipy_python *python;
    struct extipy_buffer *buffer;
    struct extipy_ctx *ctx[2];
    struct exti_error err;

    if (extipy_find(&python, "/usr/bin/python3", &err) ||
        extipy_buffer_new(&buffer, &info, NULL, NULL, &err))
        return failed(&err);
    for (int i = 0; i < 2; i++) {
        if (extipy_open(&ctx[i], python, NULL, &err) ||
            extipy_exec(ctx[i],
                        "def scale(memory, factor):\n"
                        "    for i, x in enumerate(memory): memory[i] = x * factor\n"
                        "    return sum(memory)\n",
                        NULL, &err) ||
            extipy_values_new(&values, &err))
            return failed(&err);
        call.values = values;
        call.args =
            extipy_container(values, EXTIPY_TUPLE,
                             (size_t[]){extipy_buffer(values, buffer), extipy_int(values, 10)}, 2);
        if (extipy_call(ctx[i], &call, &result, NULL, &err) || /* on this thread */
            extipy_value(result, 1, &value))
            return failed(&err);
        printf("context %d: sum %g, and the program sees %g\n", i, value.real, data[0]);
        extipy_values_free(values);
        extipy_values_free(result);
    }
    extipy_buffer_release(buffer);
    for (int i = 0; i < 2; i++)
        if (extipy_close(ctx[i], NULL, NULL, NULL, &err)) /* finalised and unloaded */
            return failed(&err);
    extipy_python_free(python);
    return 0;
}
