/* -DN=5 defines extra_5, which returns 5. */
#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)

int NAME(extra_, N)(void);

int NAME(extra_, N)(void)
{
    return N;
}
