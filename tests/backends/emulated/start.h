/* What the programs have in common, after a generated unit: starts of its kernels, random numbers.
 */
#ifndef PEAL_TESTS_EMULATED_START_H
#define PEAL_TESTS_EMULATED_START_H

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef void kernel_function(const peal_launch);
struct started {
    kernel_function *kernel;
    const peal_launch *launch;
};

static void start_one(const void *argument)
{
    const started *s = (const started *)argument;
    s->kernel(*s->launch);
}

static void start(kernel_function *kernel, unsigned grid, unsigned threads,
                  const peal_launch &launch)
{
    started s = {kernel, &launch};
    run_grid(grid, threads, start_one, &s);
}

static uint64_t seed = 12345;
static uint32_t pick(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

template <class T> static unsigned long long at(T *pointer)
{
    return (unsigned long long)pointer;
}

#endif
