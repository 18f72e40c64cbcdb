/* Nothing: what is left is the dispatcher's. */
PEAL_KERNEL(level)(peal_tile t, PEAL_READ(double, u), PEAL_UPDATE(double, v))
{
    (void)t;
    (void)u;
    (void)v;
}
