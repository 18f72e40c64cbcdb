/* Pieces of copies for a GPU: whatever the shape and the greatest number of units, every byte goes
 * from where it was to where it belongs, once. */
#include "backends/cuda/lower/copy_pieces.h"
#include "backends/cuda/stream/stream_sink.h"
#include "tests/backends/check.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 16, MOST_PIECES = 4096 };

static uint64_t state = 88172645463325252u;

static int64_t below(int64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state % (uint64_t)n);
}

/* where[t]: source byte + 1 that byte t of the target gets. */
static void run_piece(const peal_device_piece *p, int *where)
{
    for (unsigned i2 = 0; i2 < p->count[2]; i2++)
        for (unsigned i1 = 0; i1 < p->count[1]; i1++)
            for (unsigned i0 = 0; i0 < p->count[0]; i0++)
                for (int64_t b = 0; b < (int64_t)p->run * p->unit; b++) {
                    int64_t from = p->source_offset + i0 * p->source_step[0] +
                                   i1 * p->source_step[1] + i2 * p->source_step[2] + b;
                    int64_t to = p->target_offset + i0 * p->target_step[0] +
                                 i1 * p->target_step[1] + i2 * p->target_step[2] + b;
                    assert_int_equal(where[to], 0);
                    where[to] = (int)from + 1;
                }
    int64_t offsets = p->source_offset | p->target_offset;
    for (int k = 0; k < 3; k++)
        offsets |= p->count[k] > 1 ? p->source_step[k] | p->target_step[k] : 0;
    assert_int_equal(offsets % p->unit, 0);
    assert_int_equal((int64_t)p->run * p->count[0] * p->count[1] * p->count[2], p->units);
}

/* One box, cut at `most` units, against the copy that its extents and strides say. */
static void try_box(const int64_t *extent, const int64_t *source, const int64_t *target,
                    int64_t element, int64_t most)
{
    static int where[MOST_BYTES];
    static peal_device_piece piece[MOST_PIECES];
    peal_cuda_copied_box box = {.source_offset = below(4) * element,
                                .target_offset = below(4) * element,
                                .alignment = 16};

    peal_cuda_box_normalise(extent, source, target, element, &box);
    int count = peal_cuda_box_cut_up(&box, most, NULL);
    assert_in_range(count, 1, MOST_PIECES);
    assert_int_equal(peal_cuda_box_cut_up(&box, most, piece), count);
    memset(where, 0, sizeof(where));
    for (int i = 0; i < count; i++) {
        assert_true(piece[i].units <= most);
        run_piece(&piece[i], where);
    }
    int64_t i[4];
    for (i[3] = 0; i[3] < extent[3]; i[3]++)
        for (i[2] = 0; i[2] < extent[2]; i[2]++)
            for (i[1] = 0; i[1] < extent[1]; i[1]++)
                for (i[0] = 0; i[0] < extent[0] * element; i[0]++) {
                    int64_t from = box.source_offset + i[0], to = box.target_offset + i[0];
                    for (int k = 1; k < 4; k++) {
                        from += i[k] * source[k] * element;
                        to += i[k] * target[k] * element;
                    }
                    assert_int_equal(where[to], (int)from + 1);
                    where[to] = 0;
                }
    for (int b = 0; b < MOST_BYTES; b++)
        assert_int_equal(where[b], 0);
}

static void every_byte_is_copied_once(void **test)
{
    (void)test;
    for (int n = 0; n < 3000; n++) {
        int64_t extent[4], source[4], target[4], from = 1, to = 1;
        for (int k = 0; k < 4; k++) {
            extent[k] = 1 + below(below(3) ? 4 : 9);
            source[k] = from;
            target[k] = to;
            from *= extent[k] + (below(2) ? below(3) : 0);
            to *= extent[k] + (below(2) ? below(3) : 0);
        }
        int64_t element = INT64_C(1) << below(4);
        if ((from + 8) * element < MOST_BYTES && (to + 8) * element < MOST_BYTES)
            try_box(extent, source, target, element, 64 + below(200));
    }
}

/* Real limits, with more units than 32 bits hold. */
static void great_boxes_are_cut(void **test)
{
    const int64_t flat[] = {INT64_C(1) << 35, 1, 1, 1}, ones[] = {1, 1, 1, 1};
    const int64_t column[] = {1, INT64_C(1) << 33, 3, 1}, step[] = {1, 2, INT64_C(1) << 35, 1};
    const struct {
        const int64_t *extent, *stride;
        int64_t element, bytes;
    } cases[] = {{flat, ones, 1, INT64_C(1) << 35},
                 {flat, ones, 8, INT64_C(1) << 38},
                 {column, step, 8, INT64_C(3) << 36}};
    (void)test;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static peal_device_piece piece[MOST_PIECES];
        peal_cuda_copied_box box = {.alignment = 16};
        int64_t bytes = 0;
        peal_cuda_box_normalise(cases[i].extent, cases[i].stride, cases[i].stride, cases[i].element,
                                &box);
        int count = peal_cuda_box_cut_up(&box, PEAL_CUDA_PIECE_UNITS, NULL);
        assert_in_range(count, 2, MOST_PIECES);
        peal_cuda_box_cut_up(&box, PEAL_CUDA_PIECE_UNITS, piece);
        for (int k = 0; k < count; k++) {
            int64_t units =
                (int64_t)piece[k].run * piece[k].count[0] * piece[k].count[1] * piece[k].count[2];
            assert_int_equal(units, piece[k].units);
            assert_true(units > PEAL_CUDA_PIECE_UNITS / 4 && units <= PEAL_CUDA_PIECE_UNITS);
            bytes += units * piece[k].unit;
        }
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static int rows, boxes;
static CUdeviceptr last_from, last_to;

static CUresult take_row(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    assert_int_equal(bytes, 64);
    last_from = from;
    last_to = to;
    rows++;
    return CUDA_SUCCESS;
}

static CUresult take_box(const CUDA_MEMCPY3D *box, CUstream stream)
{
    (void)stream;
    assert_true(box->srcPitch <= INT32_MAX && box->dstPitch <= INT32_MAX);
    boxes++;
    return CUDA_SUCCESS;
}

/* The engine takes no pitch of 2^31 bytes: such rows are copied one by one. */
static void rows_far_apart_are_copied_one_by_one(void **test)
{
    const peal_cuda_driver driver = {.cuMemcpyAsync_ = take_row, .cuMemcpy3DAsync_ = take_box};
    const int64_t near = INT64_C(1) << 20, far = INT64_C(1) << 31;
    peal_device_piece piece = {.unit = 16, .run = 4, .count = {5, 3, 2}};
    (void)test;
    for (int k = 0; k < 3; k++) {
        piece.source_step[k] = near << 3 * k;
        piece.target_step[k] = far << 3 * k;
    }
    assert_int_equal(peal_cuda_copy_box(&driver, NULL, &piece, 1000, 2000), CUDA_SUCCESS);
    assert_int_equal(rows, 5 * 3 * 2);
    assert_int_equal(last_from, 2000 + 4 * near + 2 * (near << 3) + (near << 6));
    assert_int_equal(last_to, 1000 + 4 * far + 2 * (far << 3) + (far << 6));
    assert_int_equal(boxes, 0);
    memcpy(piece.target_step, piece.source_step, sizeof(piece.target_step));
    assert_int_equal(peal_cuda_copy_box(&driver, NULL, &piece, 1000, 2000), CUDA_SUCCESS);
    assert_int_equal(boxes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_copied_once),
        cmocka_unit_test(great_boxes_are_cut),
        cmocka_unit_test(rows_far_apart_are_copied_one_by_one),
    };
    return cmocka_run_group_tests_name("pieces of copies", tests, NULL, NULL);
}
