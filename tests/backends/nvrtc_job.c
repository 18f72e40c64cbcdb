/* The compiler for GPUs, if there is one. */
#include "tests/backends/nvrtc_job.h"

#include "base/cuda_driver.h"
#include "tests/backends/check.h"

bool nvrtc_is_here(void)
{
    const char *reason = NULL;
    if (peal_nvrtc_open(&reason))
        return true;
    print_message("skipped: %s\n", reason);
    return false;
}
