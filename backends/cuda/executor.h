/* The two executors of the backend: a plan runs the modes sync, stream, graph and fused, serial
 * runs the mode of its name. The contract of each function is that of its entry in peal_backend_ops
 * (include/peal/plugin/backend.h). */
#ifndef PEAL_CUDA_EXECUTOR_H
#define PEAL_CUDA_EXECUTOR_H

#include <peal/plugin/backend.h>

typedef struct peal_cuda_plan peal_cuda_plan;
typedef struct peal_cuda_serial peal_cuda_serial;

peal_status peal_cuda_plan_create(const peal_backend_desc *desc, peal_cuda_plan **out);
peal_status peal_cuda_plan_start(peal_cuda_plan *plan, bool setup, int64_t steps, bool finish);
peal_status peal_cuda_plan_wait(peal_cuda_plan *plan, peal_backend_result *result);
/* Embedded plans, mode stream: a phase onto the application's stream, and the end of all of them.
 */
peal_status peal_cuda_plan_enqueue(peal_cuda_plan *plan, void *stream, peal_backend_phase phase);
peal_status peal_cuda_plan_settle(peal_cuda_plan *plan);
int peal_cuda_plan_storage(const peal_cuda_plan *plan, int index, int array);
int64_t peal_cuda_plan_progress(const peal_cuda_plan *plan);
/* Iterations that are captured once and replayed, and from which step on; 1: none. */
int64_t peal_cuda_plan_repeats(const peal_cuda_plan *plan, int64_t *first);
/* How many of the steps done so far were in replays. */
int64_t peal_cuda_plan_replayed(const peal_cuda_plan *plan);
void peal_cuda_plan_destroy(peal_cuda_plan *plan);

/* The host's executor of serial, whose tiles run on the device. */
peal_status peal_cuda_serial_create(const peal_backend_desc *desc, peal_cuda_serial **out);
peal_status peal_cuda_serial_start(peal_cuda_serial *serial, bool setup, int64_t steps,
                                   bool finish);
peal_status peal_cuda_serial_wait(peal_cuda_serial *serial, peal_backend_result *result);
peal_status peal_cuda_serial_follow(peal_cuda_serial *serial, void *stream, void *event);
peal_status peal_cuda_serial_event(peal_cuda_serial *serial, void **event);
int peal_cuda_serial_storage(const peal_cuda_serial *serial, int index, int array);
int64_t peal_cuda_serial_progress(const peal_cuda_serial *serial);
void peal_cuda_serial_destroy(peal_cuda_serial *serial);
/* The function that runs tiles of a task, for who calls it outside of a run. */
peal_function peal_cuda_serial_function(const peal_cuda_serial *serial, int index, int task,
                                        bool partials, void **user);

#endif
