/* Fuzzes the reader of machine files: whatever the bytes, no crash, no leak, a refusal is told and
 * what is accepted has times that can be added up. */
#include "dsl/dsl.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peal_diagnostics *list = peal_diagnostics_create();
    static peal_machine_times times;
    peal_machine machine;
    times = (peal_machine_times){.kernel_count = 0};
    peal_status status =
        peal_machine_read_memory("fuzz.yaml", (const char *)data, size, list, &machine, &times);
    if ((status != PEAL_STATUS_OK) != (peal_diagnostics_errors(list) > 0))
        abort();
    if (!status && (machine.ranks < 0 || machine.processes < 0 || machine.workers < 0))
        abort();
    for (int m = 0; !status && m < PEAL_MODE_COUNT; m++)
        if (!isfinite(times.mode[m].launch_s) || times.mode[m].launch_s < 0)
            abort();
    peal_diagnostics_destroy(list);
    return 0;
}
