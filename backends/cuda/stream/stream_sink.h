/* The sink that calls the driver. Captures and embedded exchanges are made of the same entries,
 * with a few of their own; lower/sink.h says what each entry does. */
#ifndef PEAL_CUDA_STREAM_SINK_H
#define PEAL_CUDA_STREAM_SINK_H

#include "backends/cuda/lower/sink.h"

extern const struct peal_cuda_sink_ops peal_cuda_stream_sink;

CUresult peal_cuda_stream_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                 const peal_cuda_kernel_launch *what);
CUresult peal_cuda_stream_copy(peal_cuda_rank *rank, peal_cuda_lane *lane,
                               const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from);
CUresult peal_cuda_stream_write_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                                     uint64_t value);
CUresult peal_cuda_stream_wait_word(peal_cuda_rank *rank, peal_cuda_lane *lane, int op,
                                    CUdeviceptr word, uint64_t value);
CUresult peal_cuda_stream_ring(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                               uint64_t value, unsigned bytes);
CUresult peal_cuda_stream_record(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
CUresult peal_cuda_stream_wait_event(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
CUresult peal_cuda_stream_call(peal_cuda_rank *rank, peal_cuda_lane *lane,
                               const peal_schedule_task *task, peal_call *call,
                               peal_status *status);
/* Launches the application's CUDA function on a stream, with a call by value. */
CUresult peal_cuda_call_launch(const peal_cuda_driver *driver, const peal_schedule_task *task,
                               CUstream stream, peal_call *call);

/* copy_engine.c: copies one piece by the copy engine. */
CUresult peal_cuda_copy_box(const peal_cuda_driver *driver, CUstream stream,
                            const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from);

/* host_mailbox.c: what emission needs of the host. */
extern const struct peal_cuda_host_ops peal_cuda_host;

#endif
