/* The dispatcher of `fused`: two workers walk the same list of operations, run their own tiles, and
 * wait for the other's tiles by its counts alone.
 *
 * Operation A writes a from b, B writes b from a, both with reach 1, over and over: so A must see
 * all of the last B, and must not overwrite what the last B still reads. Worker w owns tiles 2 * w
 * and 2 * w + 1 of 4; its count of an operation grows by one a tile and is never set back. TARGET is
 * peal_dispatch_target: what the count must have reached before the tile at `place` of the latest
 * instance that the walk has passed is done.
 *
 * Must hold: each tile reads what it should, whole, and nobody waits for ever. Mutants, which must
 * fail: OFF_BY_ONE (the tile before the one that is needed), NO_RETURN (A does not wait for B of the
 * iteration before), EARLY_COUNT (a tile is counted before it is written). */
#define ITERATIONS 4
#define TILES 4
#define MINE 2 /* tiles of a worker */
#ifdef OFF_BY_ONE
#define PLACE(place) (place)
#else
#define PLACE(place) ((place) + 1)
#endif
#define TARGET(passed, place) ((passed) == 0 -> 0 : ((passed) - 1) * MINE + PLACE(place))

byte count_a[2], count_b[2]; /* by worker */
byte a[TILES], b[TILES];     /* the iteration that wrote the tile */
bool writing_a[TILES], writing_b[TILES];

/* Worker 0 needs of the other its tile 2, worker 1 tile 1: the only ones within reach. */
#define BORDER (me == 0 -> 1 : 0)      /* mine that needs it, from my first */
#define NEEDED (me == 0 -> 0 : 1)      /* its place at the other worker */

#define LEFT(tile) ((tile) > 0 -> (tile) - 1 : (tile))
#define RIGHT(tile) ((tile) < TILES - 1 -> (tile) + 1 : (tile))

inline run_a()
{
    place = 0;
    do
    :: place < MINE ->
        tile = me * MINE + place;
#ifndef NO_RETURN
        if
        :: place == BORDER -> count_b[1 - me] >= TARGET(k - 1, NEEDED)
        :: else
        fi;
#endif
        assert(b[LEFT(tile)] == k - 1 && !writing_b[LEFT(tile)]);
        assert(b[RIGHT(tile)] == k - 1 && !writing_b[RIGHT(tile)]);
#ifdef EARLY_COUNT
        count_a[me]++;
#endif
        writing_a[tile] = true;
        a[tile] = k;
        writing_a[tile] = false;
#ifndef EARLY_COUNT
        count_a[me]++;
#endif
        place++
    :: else -> break
    od
}

inline run_b()
{
    place = 0;
    do
    :: place < MINE ->
        tile = me * MINE + place;
        if
        :: place == BORDER -> count_a[1 - me] >= TARGET(k, NEEDED)
        :: else
        fi;
        assert(a[LEFT(tile)] == k && !writing_a[LEFT(tile)]);
        assert(a[RIGHT(tile)] == k && !writing_a[RIGHT(tile)]);
        writing_b[tile] = true;
        b[tile] = k;
        writing_b[tile] = false;
        count_b[me]++;
        place++
    :: else -> break
    od
}

proctype worker(byte me)
{
    byte k = 1, place, tile;
    do
    :: k <= ITERATIONS ->
        run_a();
        run_b();
        k++
    :: else -> break
    od
}

init
{
    atomic {
        run worker(0);
        run worker(1)
    }
}
