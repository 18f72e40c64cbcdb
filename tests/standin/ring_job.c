/* A schedule made by hand on the stand-in of the driver, whose device memory is the host's: a ring
 * of two ranks of one process that both receive before they send. No spec makes one: the check of
 * all ranks finds the cycle before. Prints what is reported. */
#include "tests/backends/ring.h"

#include <stdio.h>

int main(void)
{
    const peal_device_request request = {.size = sizeof(request), .local_processes = 1};
    ring_options options = {.ranks = 2,
                            .points = 12,
                            .tiles = 4,
                            .mode = PEAL_MODE_STREAM,
                            .workers = 1,
                            .lanes = 1,
                            .direct = true,
                            .slots = 1,
                            .backend = &peal_backend_cuda};
    ring_job job;
    const char *reason = peal_backend_cuda.open(&request, &options.device);
    if (reason) {
        puts(reason);
        return PEAL_STATUS_ENVIRONMENT;
    }
    ring_init(&job, &options);
    ring_receive_first(&job);
    peal_status status = ring_create(&job);
    if (!status)
        status = ring_run(&job, true, 3, true);
    peal_diagnostics_print(job.diagnostics, stdout, 0);
    ring_close(&job);
    peal_backend_cuda.close(options.device);
    return (int)status;
}
