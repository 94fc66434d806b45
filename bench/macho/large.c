/* Flat references to the API, and more constant data than in a large extension. */
extern int api_call(int value);
extern int api_count;

int entry(int value)
{
    return api_call(value) + api_count;
}

__asm__(".const\n"
        ".globl _filler\n"
        "_filler:\n"
        ".incbin \"filler\"\n"
        ".text\n");
