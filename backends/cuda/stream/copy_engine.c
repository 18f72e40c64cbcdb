/* Copies by the copy engine. */
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/stream/stream_sink.h"

/* The greatest pitch of rows: CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device so far. */
enum { MOST_PITCH = INT32_MAX };

/* The engine takes boxes of rows and planes: rows at a pitch, planes at a multiple of that pitch.
 * Other steps are copied plane by plane, or row by row. */
static bool is_box(int64_t row_step, int64_t plane_step, int64_t row, unsigned planes)
{
    return row_step >= row && (planes == 1 || (row_step > 0 && plane_step % row_step == 0));
}

static CUresult copy_planes(const peal_cuda_driver *driver, CUstream stream,
                            const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from,
                            unsigned first, unsigned planes)
{
    int64_t row = (int64_t)piece->run * piece->unit;
    CUDA_MEMCPY3D box = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = from + (uint64_t)(first * piece->source_step[1]),
        .srcPitch = (size_t)piece->source_step[0],
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = to + (uint64_t)(first * piece->target_step[1]),
        .dstPitch = (size_t)piece->target_step[0],
        .WidthInBytes = (size_t)row,
        .Height = piece->count[0],
        .Depth = planes,
    };
    if (piece->count[0] == 1)
        box.srcPitch = box.dstPitch = (size_t)row;
    box.srcHeight = planes > 1 ? (size_t)piece->source_step[1] / box.srcPitch : piece->count[0];
    box.dstHeight = planes > 1 ? (size_t)piece->target_step[1] / box.dstPitch : piece->count[0];
    return driver->cuMemcpy3DAsync_(&box, stream);
}

static CUresult copy_rows(const peal_cuda_driver *driver, CUstream stream,
                          const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < piece->count[0] && !result; i++)
        result = driver->cuMemcpyAsync_(to + (uint64_t)(i * piece->target_step[0]),
                                        from + (uint64_t)(i * piece->source_step[0]),
                                        (size_t)piece->run * (size_t)piece->unit, stream);
    return result;
}

CUresult peal_cuda_copy_box(const peal_cuda_driver *driver, CUstream stream,
                            const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from)
{
    int64_t row = (int64_t)piece->run * piece->unit;
    CUresult result = CUDA_SUCCESS;

    if (piece->count[0] == 1 && piece->count[1] == 1 && piece->count[2] == 1)
        return driver->cuMemcpyAsync_(to, from, (size_t)row, stream);
    bool far = piece->source_step[0] > MOST_PITCH || piece->target_step[0] > MOST_PITCH;
    bool whole = !far &&
                 is_box(piece->source_step[0], piece->source_step[1], row, piece->count[1]) &&
                 is_box(piece->target_step[0], piece->target_step[1], row, piece->count[1]);
    for (unsigned i = 0; i < piece->count[2] && !result; i++) {
        CUdeviceptr source = from + (uint64_t)(i * piece->source_step[2]);
        CUdeviceptr target = to + (uint64_t)(i * piece->target_step[2]);
        if (whole) {
            result = copy_planes(driver, stream, piece, target, source, 0, piece->count[1]);
            continue;
        }
        for (unsigned k = 0; k < piece->count[1] && !result; k++)
            result = far ? copy_rows(driver, stream, piece,
                                     target + (uint64_t)(k * piece->target_step[1]),
                                     source + (uint64_t)(k * piece->source_step[1]))
                         : copy_planes(driver, stream, piece, target, source, k, 1);
    }
    return result;
}
