/* The library that the copies need. */
int exti_test_dependency(void);

int exti_test_dependency(void)
{
    return 1;
}
