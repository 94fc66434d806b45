/* An extension with its own functions and data, imports from pythonXY.dll, and thread-local
 * storage. */
#define IMPORT __declspec(dllimport)
#define API __declspec(dllexport)

IMPORT extern int PyLong_Type;
IMPORT int PyModule_Create2(void *definition, int version);
IMPORT int Py_BuildValue(void);

#ifdef _MSC_VER /* normally from the C library */
typedef unsigned long word;
typedef unsigned long long wide;
#ifdef _WIN64
typedef wide address;
#else
typedef word address;
#endif

int _fltused;
word _tls_index;
__attribute__((section(".tls"))) char _tls_start = 0;
__attribute__((section(".tls$ZZZ"))) char _tls_end = 0;
__attribute__((section(".rdata$T"))) const struct {
    void *start, *end, *index, *callbacks;
    word zeros, flags;
} _tls_used = {&_tls_start, &_tls_end, &_tls_index, 0, 12, 0};

__attribute__((section(".rdata"))) const struct {
    word size;
    char before[sizeof(address) == 8 ? 74 : 50];
    unsigned short dependent_load_flags;
    char behind[64];
} _load_config_used = {sizeof _load_config_used, {0}, 0x800, {0}};

int __stdcall _DllMainCRTStartup(void *module, unsigned reason, void *reserved)
{
    (void)module;
    (void)reason;
    (void)reserved;
    return 1;
}

#ifndef DELAY_HELPER /* of another source */
/* Everything for delay loading except the loading itself. */
void *__stdcall __delayLoadHelper2(const void *descriptor, void **slot)
{
    (void)descriptor;
    return *slot;
}
#endif

#ifdef __i386__
__asm__(".globl __tls_array\n.set __tls_array, 0x2c");
#endif
static __declspec(thread) int own;
#else
static int own;
#endif

API int ext_state = 7;

API int PyInit_ext(void)
{
    return PyModule_Create2(&ext_state, 3) + PyLong_Type + own++;
}

API int ext_value(void)
{
    return Py_BuildValue();
}
