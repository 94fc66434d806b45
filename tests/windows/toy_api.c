/* A library that stands for an interpreter's: state, and a symbol that is data. */
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
