/* Grey that flows between neighbours, and not through the border. */
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (float)((x * 37 + y * 101) % 256);
    }
}

PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v), long n, long rows)
{
    PEAL_FOR_2D(t, x, y) {
        float here = PEAL_AT(u, x, y);
        float left = x > 0 ? PEAL_AT(u, x - 1, y) - here : 0.0f;
        float right = x < n - 1 ? PEAL_AT(u, x + 1, y) - here : 0.0f;
        float up = y > 0 ? PEAL_AT(u, x, y - 1) - here : 0.0f;
        float down = y < rows - 1 ? PEAL_AT(u, x, y + 1) - here : 0.0f;
        PEAL_AT(v, x, y) = here + 0.2f * (left + right + up + down);
    }
}
