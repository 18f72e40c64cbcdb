/* The tiles of mode fused on GPUs: two devices with two blocks each, which step after step read the
 * storage that the last step wrote, write the other one, store their border into the peer's halo,
 * and add their share to its flag. No block waits for more than what it touches, so the blocks are
 * at different steps.
 *
 * Block `me` is block me % 2 of device me / 2. Its epoch counts the steps that it is through with.
 * Step k waits for the epoch of the device's other block, whose tile it reads, and for both shares
 * of the peer's message k - 1, whose halo it reads. Contents, epochs and flags are numbered modulo
 * K: what is older or newer than it should be is noticed.
 *
 * Stores are seen late: a block's store to its tile, and the one to the peer's halo, are on their
 * way until `memory` brings them there, whenever it likes; a release waits for those of its scope.
 * Loads are of a copy of what was there when the block has last emptied its cache, at the latest:
 * an acquire empties it. What this leaves out: a store that some blocks of a device see before
 * others do, loads that overtake loads without a cache between, and stores of one block that
 * overtake each other by more than the two here.
 *
 * Must hold: whoever reads sees what the step before wrote, from the begin of the read to its end,
 * and nobody waits for ever. Mutants, which must fail: NO_EPOCH (the other block's tile is not
 * waited for), NO_ORDER (nor is it read: but its share of the flag may be missing, and a newer one
 * of this block stand for it), HALF_SUM (one share is taken for the message), NO_RELEASE (of the
 * flag), GPU_SCOPE (the flag is released within the device only), NO_ACQUIRE, EARLY_SHARE (the share
 * is added before the halo has been read to the end: it is a credit, too), WAIT_AHEAD (for the
 * message of the same step: nobody goes on), STORAGES=1. */
#ifndef STORAGES
#define STORAGES 2
#endif
#define K 8
#define REACHED(word, value, modulus) ((((word) + (modulus) - (value)) % (modulus)) < (modulus) / 2)

#define BEFORE(step) (((step) + K - 1) % K)
#define PLACE(who, step) ((who) * STORAGES + (step) % STORAGES)
#if defined(HALF_SUM)
#define WHOLE(step) ((2 * BEFORE(step) + 2 * K - 1) % (2 * K))
#elif defined(WAIT_AHEAD)
#define WHOLE(step) (2 * (step))
#else
#define WHOLE(step) (2 * BEFORE(step)) /* both shares of the message that the step reads */
#endif
#ifdef NO_ORDER
#define NEAR_IS(value, step) true
#else
#define NEAR_IS(value, step) ((value) == (step))
#endif
#define OTHER (me / 2 * 2 + 1 - me % 2)
#define PEER (1 - me / 2)
#define IN_PEER (PEER * 2 + me % 2) /* my part of the peer's halo */

byte epoch[4], flag[2];                      /* by block; by device, in shares */
byte tile[4 * STORAGES], halo[4 * STORAGES]; /* the step that wrote it */
bool tile_pending[4], halo_pending[4];       /* stores on their way, */
byte storing[4];                             /* of which step */

/* Caches, by block and storage: of the other's tile, and of both parts of the own halo. */
#define EMPTY K
byte near[4 * STORAGES], first[4 * STORAGES], second[4 * STORAGES];
#define LOAD(cache, place) cache = (cache == EMPTY -> place : cache)

inline empty_caches(who)
{
    near[PLACE(who, 0)] = EMPTY;
    first[PLACE(who, 0)] = EMPTY;
    second[PLACE(who, 0)] = EMPTY;
    near[PLACE(who, 1)] = EMPTY;
    first[PLACE(who, 1)] = EMPTY;
    second[PLACE(who, 1)] = EMPTY
}

#ifdef NO_ACQUIRE
#define ACQUIRE skip
#else
#define ACQUIRE empty_caches(me)
#endif

inline read(step)
{
    d_step {
        LOAD(near[PLACE(me, step)], tile[PLACE(OTHER, step)]);
        LOAD(first[PLACE(me, step)], halo[PLACE(me / 2 * 2, step)]);
        LOAD(second[PLACE(me, step)], halo[PLACE(me / 2 * 2 + 1, step)]);
        assert(NEAR_IS(near[PLACE(me, step)], step));
        assert(first[PLACE(me, step)] == step && second[PLACE(me, step)] == step)
    };
    d_step { /* what has not been loaded yet is loaded now */
        assert(NEAR_IS(tile[PLACE(OTHER, step)], step));
        assert(halo[PLACE(me / 2 * 2, step)] == step && halo[PLACE(me / 2 * 2 + 1, step)] == step)
    }
}

inline add_share()
{
#ifdef GPU_SCOPE
    atomic { !tile_pending[me]; flag[PEER] = (flag[PEER] + 1) % (2 * K) }
#elif defined(NO_RELEASE)
    flag[PEER] = (flag[PEER] + 1) % (2 * K)
#else
    atomic { !tile_pending[me] && !halo_pending[me]; flag[PEER] = (flag[PEER] + 1) % (2 * K) }
#endif
}

proctype block(byte me)
{
    byte k = 1;
    do
    :: true ->
#if !defined(NO_EPOCH) && !defined(NO_ORDER)
        atomic { REACHED(epoch[OTHER], BEFORE(k), K); ACQUIRE };
#endif
        atomic { REACHED(flag[me / 2], WHOLE(k), 2 * K); ACQUIRE };
#ifdef EARLY_SHARE
        d_step { storing[me] = k; halo_pending[me] = true };
        add_share();
        read(BEFORE(k));
        tile_pending[me] = true;
#else
        read(BEFORE(k));
        d_step { storing[me] = k; tile_pending[me] = true; halo_pending[me] = true };
        add_share();
#endif
        atomic { !tile_pending[me]; epoch[me] = k };
        k = (k + 1) % K
    od
}

/* Brings stores to where they can be seen. */
proctype memory(byte me)
{
end:
    do
    :: d_step {
           tile_pending[me] ->
           tile[PLACE(me, storing[me])] = storing[me];
           tile_pending[me] = false
       }
    :: d_step {
           halo_pending[me] ->
           halo[PLACE(IN_PEER, storing[me])] = storing[me];
           halo_pending[me] = false
       }
    od
}

init
{
    byte i = 0;
    atomic {
        do
        :: i < 4 ->
            empty_caches(i);
            run block(i);
            run memory(i);
            i++
        :: else -> break
        od
    }
}
