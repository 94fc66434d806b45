/* An extension that uses the API with a name of one letter. */
int t(void);
int short_next(void);

int short_next(void)
{
    return t();
}
