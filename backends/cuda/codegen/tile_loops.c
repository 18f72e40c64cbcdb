/* Whether a kernel writes each point of its tile in a loop over the tile's points, and does nothing
 * else with either, as its text says. In a deep round (device/deep.h) each thread has a tile of its
 * own, of one point: what is done once a tile, or counts on the tile's extents, would be done
 * otherwise there; and a point that is left out would have any value, where plain steps let it have
 * its old one. What an array is read by other than PEAL_AT would not find it in a window.
 *
 * Only what is plain to see is accepted: own_points.c says what that is. */
#include "backends/cuda/codegen/tile_loops.h"

#include "backends/cuda/codegen/kernel_text.h"

/* Whether token `at` begins a statement of the block whose bracket is token `block`. */
static bool begins_statement(const peal_cuda_token *t, int at, int block)
{
    return peal_cuda_text_bracket(t, at) == block &&
           (peal_cuda_token_is(&t[at - 1], "{") || peal_cuda_token_is(&t[at - 1], ";") ||
            peal_cuda_token_is(&t[at - 1], "}"));
}

/* Whether each loop has all points of the tile, and runs whatever else the kernel does. */
static bool loops_over_all(const peal_cuda_kernel_text *k)
{
    for (int i = 0; i < k->loop_count; i++)
        if (k->loop[i].is_even || !begins_statement(k->token, k->loop[i].open - 1, k->begin))
            return false;
    return true;
}

/* Whether a PEAL_AT at token `at` is what a loop runs first, or a statement of its block. */
static bool is_in_loop(const peal_cuda_kernel_text *k, int at)
{
    const peal_cuda_tile_loop *l = peal_cuda_text_loop_around(k, at);
    const peal_cuda_token *t = k->token;
    int body = l ? t[l->open].match + 1 : at;

    return l &&
           (at == body || (peal_cuda_token_is(&t[body], "{") && begins_statement(t, at, body)));
}

/* Whether the array is named in such statements only, and in one at least. What an operator stores
 * to is a PEAL_AT. */
static bool is_written_alone(const peal_cuda_kernel_text *k)
{
    const peal_cuda_token *t = k->token;
    bool stores = false;

    for (int i = k->begin + 1; i < k->end; i++) {
        if (!peal_cuda_tokens_equal(&t[i], k->array))
            continue;
        int close = t[i - 1].match; /* -1: it is not the first argument */
        if (close < i || !peal_cuda_token_is(&t[close + 1], "=") || !is_in_loop(k, i - 2))
            return false;
        stores = true;
    }
    return stores;
}

bool peal_cuda_kernel_loops_alone(const peal_cuda_tokens *tokens, const char *kernel, int arrays,
                                  int written, int axes, peal_arena *arena)
{
    for (int i = 0; i < arrays; i++) {
        peal_cuda_kernel_text k = {.axes = axes, .is_straight = true};
        if (!peal_cuda_text_find(&k, tokens, kernel, arrays, i,
                                 i == written ? "PEAL_WRITE" : "PEAL_READ", arena) ||
            !peal_cuda_text_stores_at_own(&k) || !loops_over_all(&k) ||
            (i == written && !is_written_alone(&k)))
            return false;
    }
    return written >= 0 && written < arrays && axes <= PEAL_CUDA_TEXT_AXES;
}
