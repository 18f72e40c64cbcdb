/* How many blocks of a kernel an SM holds: the tables "Technical specifications per compute
 * capability" and "Occupancy" of CUDA's documentation as arithmetic. */
#include "backends/cuda/gpu/occupancy.h"

#include "base/cuda_driver.h"

enum {
    WARP = 32,
    PARTS = 4, /* of an SM, each with registers and warps of its own */
    PART_REGISTERS = 16384,
    WARP_UNIT = 256, /* registers are given to a warp in multiples of this */
    SHARED_UNIT = 128,
    MOST_REGISTERS = 255,
    KIB = 1024,
    FALLBACK = 90 /* the architecture where there is no GPU */
};

/* From the oldest architecture that NVRTC 12.4 compiles for and peal runs on. */
static const peal_cuda_sm sms[] = {
    {70, 2048, 32, 96 * KIB, 0},     {72, 2048, 32, 96 * KIB, 0},
    {75, 1024, 16, 64 * KIB, 0},     {80, 2048, 32, 164 * KIB, KIB},
    {86, 1536, 16, 100 * KIB, KIB},  {87, 1536, 16, 164 * KIB, KIB},
    {89, 1536, 24, 100 * KIB, KIB},  {90, 2048, 32, 228 * KIB, KIB},
    {100, 2048, 32, 228 * KIB, KIB}, {103, 2048, 32, 228 * KIB, KIB},
    {120, 1536, 24, 100 * KIB, KIB}, {121, 1536, 24, 100 * KIB, KIB},
};

const peal_cuda_sm *peal_cuda_sm_find(int architecture)
{
    for (size_t i = 0; i < sizeof(sms) / sizeof(sms[0]); i++)
        if (sms[i].architecture == architecture)
            return &sms[i];
    return NULL;
}

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

static int warps_of(int threads)
{
    return round_up(threads > 0 ? threads : 1, WARP) / WARP;
}

/* Warps that the registers of an SM are enough for. */
static int warps_by_registers(int registers)
{
    return PART_REGISTERS / round_up((registers > 0 ? registers : 1) * WARP, WARP_UNIT) * PARTS;
}

int peal_cuda_sm_blocks(const peal_cuda_sm *sm, const peal_cuda_block_needs *needs,
                        const char **limit)
{
    int warps = warps_of(needs->threads);
    int shared = round_up(needs->shared_bytes + sm->shared_block, SHARED_UNIT);
    int by_registers = warps_by_registers(needs->registers) / warps;
    int by_threads = sm->threads / WARP / warps;
    int by_shared = shared > 0 ? sm->shared_bytes / shared : sm->blocks;
    int blocks = sm->blocks;

    *limit = "blocks";
    if (by_threads < blocks) {
        blocks = by_threads;
        *limit = "threads";
    }
    if (by_shared < blocks) {
        blocks = by_shared;
        *limit = "shared memory";
    }
    if (by_registers < blocks) {
        blocks = by_registers;
        *limit = "registers";
    }
    return blocks;
}

int peal_cuda_sm_budget(int threads, int blocks)
{
    int warps = warps_of(threads) * (blocks > 0 ? blocks : 1);
    int each = PART_REGISTERS / ((warps + PARTS - 1) / PARTS);
    int registers = each / WARP_UNIT * WARP_UNIT / WARP;

    return registers > MOST_REGISTERS ? MOST_REGISTERS : registers;
}

int peal_cuda_default_architecture(void)
{
    const char *reason = NULL;
    const peal_cuda_driver *driver = peal_cuda_open(&reason);
    int major = 0, minor = 0;
    CUdevice device;

    if (driver && driver->device_count > 0 && !driver->cuDeviceGet_(&device, 0) &&
        !driver->cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                       device) &&
        !driver->cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                       device) &&
        peal_cuda_sm_find(10 * major + minor))
        return 10 * major + minor;
    return FALLBACK;
}
