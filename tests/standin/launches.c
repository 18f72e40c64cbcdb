/* Launches and copies of the stand-in.
 *
 * STANDIN_STUCK=N: the N-th launch (of a kernel or graph, from 1) never ends.
 * STANDIN_RECORDS=KIND:N: from the N-th launch of a kernel on, the first that could records what a
 * kernel does that gives up: 1, a wait that took too long; 2, an expression without a value.
 * STANDIN_FLAGS=1: a line "flags ..." for each launch of a kernel that stores some, with its name.
 * STANDIN_GRIDS=1: a line "grid N" for each launch of a kernel that stays, with its blocks.
 */
#include "backends/cuda/codegen/device/launch.h"
#include "tests/standin/record.h"
#include "tests/standin/streams.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a kernel of peal's that stores flags: how many boxes it has, and which of them have a part in
 * each flag. */
static void note_flags(CUfunction function, const peal_launch *of)
{
    char line[512];
    int at;

    if (!getenv("STANDIN_FLAGS") || of->write_count == 0)
        return;
    at = snprintf(line, sizeof(line), "flags boxes=%d mirrors=%d writes=", of->box_count,
                  of->remote_store_count);
    for (int i = 0; i < of->write_count && at < (int)sizeof(line) - 16; i++)
        at += snprintf(line + at, sizeof(line) - (size_t)at, "%s%x", i ? "," : "",
                       of->write[i].boxes);
    if (!emulate_kernel && at < (int)sizeof(line))
        snprintf(line + at, sizeof(line) - (size_t)at, " %s", (const char *)function);
    standin_note(line);
}

static void launch(CUstream handle, emulate_call *call)
{
    static int launches;
    const char *stuck = getenv("STANDIN_STUCK");
    standin_put(handle, call, !stuck || ++launches != atoi(stuck));
}

static emulate_call *kernel_call(CUfunction function, unsigned blocks, unsigned threads,
                                 void **parameter)
{
    return emulate_kernel ? emulate_kernel((void *)function, blocks, threads, parameter) : NULL;
}

/* As device/run.h does it. */
static void fill_record(const peal_launch *launch)
{
    static int seen, done;
    const char *asked = getenv("STANDIN_RECORDS");
    int kind = 0, number = 0;
    if (!asked || done || sscanf(asked, "%d:%d", &kind, &number) != 2 || ++seen < number ||
        !launch->control || (kind == 1 && launch->wait_count == 0))
        return;
    peal_device_control *control = (peal_device_control *)(uintptr_t)launch->control;
    done = 1;
    control->kind = kind;
    control->op = kind == 1 ? launch->wait[0].op : launch->op;
    control->step = launch->counter[0];
    control->expected = kind == 1 ? launch->wait[0].value : 0;
    control->seen = kind == 1 ? *(volatile uint64_t *)(uintptr_t)launch->wait[0].word : 0;
    __atomic_store_n(&control->failed, 1, __ATOMIC_RELEASE);
}

/* A kernel that reads what it is told must be told memory that is there: it is read here. */
static void touch(CUfunction function, const peal_launch *of)
{
    if (emulate_kernel || of->stop || strcmp((const char *)function, "peal_touch") != 0)
        return;
    for (int i = 0; i < of->list_count; i++)
        for (long long place = 0; place < of->list[i].end; place++)
            (void)*(volatile char *)(uintptr_t)(of->base[i] +
                                                (uint64_t)(place * of->argument[i].integer));
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned bytes, CUstream handle, void **parameter,
                        void **extra)
{
    (void)gy, (void)gz, (void)bytes, (void)extra;
    standin_on(handle, "cuLaunchKernel");
    NOTE(cuLaunchKernel);
    if (gx == 0 || bx == 0)
        standin_bad("cuLaunchKernel", "has no threads");
    LOCKED(launch(handle, kernel_call(function, gx, bx * by * bz, parameter)); if (parameter) {
        fill_record(parameter[0]);
        note_flags(function, parameter[0]);
        touch(function, parameter[0]);
    });
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameter,
                          void **extra)
{
    (void)extra;
    standin_on(config->hStream, "cuLaunchKernelEx");
    NOTE(cuLaunchKernelEx);
    if (config->gridDimX == 0 || config->blockDimX == 0)
        standin_bad("cuLaunchKernelEx", "has no threads");
    LOCKED(
        launch(config->hStream,
               kernel_call(function, config->gridDimX,
                           config->blockDimX * config->blockDimY * config->blockDimZ, parameter));
        if (parameter) note_flags(function, parameter[0]));
    return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned bytes,
                                   CUstream handle, void **parameter)
{
    (void)gy, (void)gz, (void)by, (void)bz, (void)bytes;
    standin_on(handle, "cuLaunchCooperativeKernel");
    NOTE(cuLaunchCooperativeKernel);
    if (getenv("STANDIN_GRIDS")) {
        char line[32];
        snprintf(line, sizeof(line), "grid %u", gx);
        standin_note(line);
    }
    LOCKED(launch(handle, kernel_call(function, gx, bx, parameter)));
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream handle)
{
    NOTE(cuGraphLaunch);
    LOCKED(launch(handle, emulate_replay ? emulate_replay((void *)graph) : NULL));
    return CUDA_SUCCESS;
}

/* Where kernels are not emulated, of all copies only plain ones are made, at once. */
static void copy(CUstream handle, emulate_box box)
{
    standin_put(handle, emulate_copy ? emulate_copy(box) : NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle)
{
    emulate_box box = {(char *)(uintptr_t)to, (const char *)(uintptr_t)from, bytes, 1, 1};
    if (standin_call("cuMemcpyAsync"))
        return CUDA_ERROR_UNKNOWN;
    if (!standin_has_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!emulate_copy)
        memcpy(box.to, box.from, bytes);
    LOCKED(copy(handle, box));
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *asked, CUstream handle)
{
    emulate_box box = {(char *)(uintptr_t)asked->dstDevice,
                       (const char *)(uintptr_t)asked->srcDevice,
                       asked->WidthInBytes,
                       asked->Height,
                       asked->Depth,
                       asked->dstPitch,
                       asked->srcPitch,
                       asked->dstPitch * asked->dstHeight,
                       asked->srcPitch * asked->srcHeight};
    NOTE(cuMemcpy3DAsync);
    LOCKED(copy(handle, box));
    return CUDA_SUCCESS;
}
