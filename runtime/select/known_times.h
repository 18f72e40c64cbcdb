/* What is known of the times of the machine at hand: from a machine file that somebody has given,
 * or from that of machines/ which is most like it. */
#ifndef PEAL_RUNTIME_SELECT_KNOWN_TIMES_H
#define PEAL_RUNTIME_SELECT_KNOWN_TIMES_H

#include "runtime/plan/plan.h"

#include <peal/plugin/times.h>

typedef struct peal_known_times {
    peal_machine_times times;   /* not given: nothing is known */
    char from[PEAL_FROM_BYTES]; /* the file, and what it is about if that is not this machine */
} peal_known_times;

/* Reads a machine file; of a path that is not there, peal's own file of that name ("host2.yaml",
 * "machines/host2.yaml"). PEAL_STATUS_SPEC, _USAGE or _ENVIRONMENT after a diagnostic. */
peal_status peal_times_read(const char *file, peal_diagnostics *diagnostics, peal_machine *machine,
                            peal_machine_times *times);

/* file: as of peal_times_read; NULL: $PEAL_MACHINE; without either, one of peal's own, for
 * `devices` GPUs or cores of this machine. device: what the GPU is ("NVIDIA H200, sm_90"); NULL:
 * the ranks are on the host. A file about the other kind of machine is passed over.
 * PEAL_STATUS_SPEC, _USAGE or _ENVIRONMENT after a diagnostic if the file cannot be read. */
peal_status peal_times_known(const char *file, const char *device, int devices,
                             peal_diagnostics *diagnostics, peal_known_times *out);

#endif
