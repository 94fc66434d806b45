/* What the copies are made to need. */
int exti_test_dependency(void);

int exti_test_dependency(void)
{
    return 1;
}
