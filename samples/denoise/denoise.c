/* Edge-preserving diffusion (Perona and Malik, 1990). Grey flows between neighbours, but the less
 * the more they differ: noise is smoothed away inside an area, and the area's outline stays sharp.
 */

/* Noise with mean 0 and deviation 1, the same for a point on every number of ranks: the sum of four
 * even ones, each a hash of the coordinates. */
static inline float noise_at(int x, int y)
{
    uint32_t h = (uint32_t)x * 2654435769u + (uint32_t)y * 2246822519u;
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        h = (h ^ (h >> 15)) * 739982445u;
        h = (h ^ (h >> 12)) * 695872825u;
        h ^= h >> 15;
        sum += (float)(h >> 8) * (1.0f / 16777216.0f);
    }
    return (sum - 2.0f) * 1.7320508f;
}

PEAL_KERNEL(disturb)(peal_tile t, PEAL_READ(uint8_t, picture), PEAL_WRITE(float, u),
                     double deviation)
{
    PEAL_FOR_2D(t, x, y) {
        float grey = (float)PEAL_AT(picture, x, y) + (float)deviation * noise_at(x, y);
        PEAL_AT(u, x, y) = grey < 0.0f ? 0.0f : grey > 255.0f ? 255.0f : grey;
    }
}

/* What flows in from a neighbour that is brighter by d. */
static inline float flow(float d, float contrast)
{
    float edge = d / contrast;
    return d / (1.0f + edge * edge);
}

/* Nothing flows through the picture's border. */
PEAL_KERNEL(diffuse)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v), long width,
                     long height, double rate, double contrast)
{
    float k = (float)contrast;
    PEAL_FOR_2D(t, x, y) {
        float here = PEAL_AT(u, x, y);
        float left = x > 0 ? flow(PEAL_AT(u, x - 1, y) - here, k) : 0.0f;
        float right = x < width - 1 ? flow(PEAL_AT(u, x + 1, y) - here, k) : 0.0f;
        float up = y > 0 ? flow(PEAL_AT(u, x, y - 1) - here, k) : 0.0f;
        float down = y < height - 1 ? flow(PEAL_AT(u, x, y + 1) - here, k) : 0.0f;
        PEAL_AT(v, x, y) = here + (float)rate * (left + right + up + down);
    }
}

/* The squared difference to the picture before noise was added. */
PEAL_KERNEL(compare)(peal_tile t, PEAL_READ(float, u), PEAL_READ(uint8_t, picture),
                     PEAL_REDUCE(double, error))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double d = (double)PEAL_AT(u, x, y) - PEAL_AT(picture, x, y);
        sum += d * d;
    }
    PEAL_PARTIAL(error, sum);
}

PEAL_KERNEL(show)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(uint8_t, shown))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(shown, x, y) = (uint8_t)(PEAL_AT(u, x, y) + 0.5f);
    }
}
