/* A stand-in for libpython: state, and a data symbol. */
__declspec(dllexport) int api_data = 1000;
static int state;

__declspec(dllexport) int api_next(void)
{
    return ++state;
}

__declspec(dllexport) int api_version(void)
{
    return VERSION;
}
