/* Rounds of mode fused on a GPU: two blocks that have tiles, and one that has what is one block's
 * work, walk the same records round after round. (NO_DECIDE: a loop that only ends after ROUNDS.)
 *
 * Record 0: both workers run a tile and are counted by a word; the last one sets it back and sends
 * what both have done. Record 1, DECIDE: by the third block, behind both, since their records look
 * at `stop`; it may store it. At the begin of a round each block waits until all are through with
 * the round before, then looks at `stop`, and ends if it is set. A store to `stop` is seen late: when
 * `memory` has brought it there, at the latest when the block's epoch is released.
 *
 * Must hold: all blocks end at the same round, the last one to be counted finds what both have done,
 * and nobody waits for ever. Mutants, which must fail: NO_BARRIER (rounds overlap as far as the
 * records let them), LOOK_EARLY (at `stop` in front of the wait), DECIDE_EARLY (it does not wait for
 * those that look), NO_RELEASE (of the epoch behind DECIDE), NO_RESET (of the word that counts). */
#define ROUNDS 3
#define RECORDS 2
#define DECIDER 2

byte epoch[3];    /* records that the block is through with */
byte arrived, tiles;
bool stop, pending;
byte ended_at[3]; /* rounds that the block has done */
byte done;

inline begin_round()
{
#ifdef LOOK_EARLY
    ends = stop;
#endif
#ifndef NO_BARRIER
    epoch[0] >= round * RECORDS && epoch[1] >= round * RECORDS && epoch[2] >= round * RECORDS;
#endif
#ifndef LOOK_EARLY
    ends = stop;
#endif
}

inline finish_block()
{
    d_step {
        ended_at[me] = round;
        done++;
        assert(done < 3 || (ended_at[0] == ended_at[1] && ended_at[1] == ended_at[2]))
    }
}

inline count_tile()
{
    tiles++;
    d_step { before = arrived; arrived++ };
    if
    :: before == 1 ->
        assert(tiles == 2);
        tiles = 0;
#ifndef NO_RESET
        arrived = 0
#endif
    :: else -> assert(before == 0)
    fi
}

proctype worker(byte me)
{
    byte round, before;
    bool ends;
    do
    :: round < ROUNDS ->
        begin_round();
        if
        :: ends -> break
        :: else
        fi;
        count_tile();
        epoch[me] = round * RECORDS + 1;
        epoch[me] = round * RECORDS + 2; /* no share of DECIDE */
        round++
    :: else -> break
    od;
    finish_block()
}

proctype decider(byte me)
{
    byte round;
    bool ends;
    do
    :: round < ROUNDS ->
        begin_round();
        if
        :: ends -> break
        :: else
        fi;
        epoch[me] = round * RECORDS + 1;
#if !defined(DECIDE_EARLY) && !defined(NO_DECIDE)
        epoch[0] >= round * RECORDS + 1 && epoch[1] >= round * RECORDS + 1;
#endif
#ifndef NO_DECIDE
        if
        :: pending = true
        :: true
        fi;
#endif
#ifndef NO_RELEASE
        !pending;
#endif
        epoch[me] = round * RECORDS + 2;
        round++
    :: else -> break
    od;
    finish_block()
}

proctype memory()
{
end:
    do
    :: d_step { pending -> stop = true; pending = false }
    od
}

init
{
    atomic {
        run worker(0);
        run worker(1);
        run decider(DECIDER);
        run memory()
    }
}
