/* A block function in device code, which peal calls for the task of its name. */
#include <peal/block.h>

extern "C" __device__ void relax_linked(const peal_block *block, const float *v,
                                        peal_block_strides v_strides, float *vn,
                                        peal_block_strides vn_strides, float *most, double *sum,
                                        double weight, long parts)
{
    const int width = block->hi[0] - block->lo[0], height = block->hi[1] - block->lo[1];
    float highest = -__int_as_float(0x7f800000);
    double all = 0;

    for (int i = block->thread; i < width * height; i += block->threads) {
        const long long x = block->lo[0] + i % width, y = block->lo[1] + i / width;
        const float *at = v + x + y * v_strides.y;
        float value = (float)weight * (at[-1] + at[1] + at[-v_strides.y] + at[v_strides.y]);
        float change = fabsf(value - *at) / (float)parts;
        vn[x + y * vn_strides.y] = value;
        highest = change > highest ? change : highest;
        all += change;
    }
    *most = highest;
    *sum = all;
}
