/* A stand-in for pythonXY.dll: functions and a variable that extensions import. */
#ifdef _MSC_VER
int _fltused;
int __stdcall _DllMainCRTStartup(void *module, unsigned reason, void *reserved)
{
    (void)module;
    (void)reason;
    (void)reserved;
    return 1;
}
#endif

#define API __declspec(dllexport)

API int PyLong_Type = 1000;
static int state;

API int PyModule_Create2(void *definition, int version)
{
    (void)definition;
    return state += version;
}

API int Py_BuildValue(void)
{
    return PyLong_Type++;
}
