/* An extension module with state of its own, which also uses the interpreter's. */
__declspec(dllimport) int api_next(void);
__declspec(dllimport) int api_version(void);
__declspec(dllimport) extern int api_data;
#ifdef HELPER
__declspec(dllimport) int helper_next(void);
#endif
__declspec(dllimport) unsigned long __stdcall GetTickCount(void);
static int state;

__declspec(dllexport) int ext_ticks(void)
{
    return (int)GetTickCount();
}

__declspec(dllexport) int ext_bump(void)
{
    return ++state * 100 + api_next();
}

__declspec(dllexport) int ext_data(void)
{
    return ++api_data;
}

__declspec(dllexport) int ext_version(void)
{
    return api_version() * 10 + VERSION;
}

#ifdef HELPER
__declspec(dllexport) int ext_helper(void)
{
    return helper_next();
}
#endif
