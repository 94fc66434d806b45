/* bcryptprimitives.dll, which Rust's standard library imports and wine 8 lacks. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(void *out, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(void *out, SIZE_T size)
{
    return SystemFunction036(out, (ULONG)size);
}
