/* An extension that uses it. */
int t(void);
int short_next(void);

int short_next(void)
{
    return t();
}
