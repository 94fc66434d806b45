/* A toy extension that refers to what no library defines: it loads nowhere with RTLD_NOW. */
int toy_defined_nowhere(void);

int missing(void)
{
    return toy_defined_nowhere();
}
