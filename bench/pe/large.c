/* Imports from the API, and more constant data than in a large extension. */
__declspec(dllimport) int api_call(int value);

__declspec(dllexport) int entry(int value)
{
    return api_call(value);
}

__asm__(".section .rdata,\"dr\"\n"
        ".globl filler\n"
        "filler:\n"
        ".incbin \"filler\"\n"
        ".text\n");
