/* A dependency of an extension.  It does not use the interpreter; with LEAKY, it binds to the
 * original one. */
#ifdef LEAKY
__declspec(dllimport) int api_next(void);
#define INTERPRETER api_next()
#else
#define INTERPRETER 0
#endif
static int state;

__declspec(dllexport) int helper_next(void)
{
    return ++state + INTERPRETER;
}
