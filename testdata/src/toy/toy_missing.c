/* A toy extension with an undefined symbol that no library has: RTLD_NOW cannot load it. */
int toy_defined_nowhere(void);

int missing(void)
{
    return toy_defined_nowhere();
}
