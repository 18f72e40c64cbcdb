/* Tickets of mode fused on a GPU (device/ticket_walker.h): BLOCKS blocks take tickets of a list, the next
 * one before the share of the last is run, in launches one after the other. A round's list: the
 * ticket that begins it; record 0, of which workers 0 and 1 have a share each, which reads what
 * record 1 of the round before wrote, and writes the worker's tile; and record 1, of which worker 0
 * alone has a share, which reads both tiles. It may store `stop`, which ends the launch in front of
 * the next round.
 *
 * Whose share it is says an epoch, not which block ran it: worker 1, without work in record 1,
 * publishes the end of the round at once. What a block has stored is on its way until `memory`
 * brings it there, or a release; what it loads may be as old as its last acquire.
 *
 * Must hold: a share reads what the shares in front of it wrote, from the begin of the read to its
 * end; each round that has begun is run to its end, and at least one in each launch; nobody waits
 * for ever, however few blocks there are (BLOCKS=1). Mutants, which must fail: NO_OWN (a share does
 * not wait for its worker's epoch: another block may be at the one before), NO_BEGIN (nor for the
 * begin of the round), NO_NEXT (worker 1 publishes the next record), OLD_EPOCHS (those of a launch that
 * was stopped are left as they are), BACKWARDS (a ticket comes before those that it waits for),
 * NO_RESET (of the words that the launch has counted in), NO_RELEASE, NO_ACQUIRE. */
#ifndef BLOCKS
#define BLOCKS 2
#endif
#define LAUNCHES 2
#define ROUNDS 2
#define A_ROUND 4 /* tickets */
#define RECORDS 2
#define LAST 2 /* place of what record 1 writes, behind the tiles */
#define EMPTY 255

byte taken, left, begun, launch, epoch[2];
bool over, stop;
byte place[3];              /* the round that wrote it, counted from 1 */
byte cache[BLOCKS * 3];
bool pending[BLOCKS], stops[BLOCKS];
byte where[BLOCKS], what[BLOCKS];
byte now, before;           /* the round that is run, and the one before that was */
byte rounds, shares, rounds_before; /* that have been run; at the launch's begin */

#define LOAD(item) cache[me * 3 + item] = (cache[me * 3 + item] == EMPTY -> place[item] : cache[me * 3 + item])
#define SEES(item, round) (cache[me * 3 + item] == round && place[item] == round)

inline empty_cache()
{
    cache[me * 3] = EMPTY;
    cache[me * 3 + 1] = EMPTY;
    cache[me * 3 + 2] = EMPTY
}

#ifdef NO_ACQUIRE
#define ACQUIRE skip
#else
#define ACQUIRE empty_cache()
#endif

inline await(who, value)
{
    atomic { epoch[who] >= value; ACQUIRE }
}

inline store(item, round, ends)
{
    d_step { where[me] = item; what[me] = round; stops[me] = ends; pending[me] = true }
}

inline publish(who, value)
{
#ifdef NO_RELEASE
    epoch[who] = value;
    !pending[me]; /* before it stores again */
#else
    atomic { !pending[me]; epoch[who] = value }
#endif
}

inline begin_round()
{
    if
    :: current == 0 ->
#ifndef OLD_EPOCHS
        d_step { epoch[0] = base; epoch[1] = base }
#else
        skip
#endif
    :: else ->
        await(0, base);
        await(1, base)
    fi;
    if
    :: stop -> over = true; begun = base + 1; break
    :: else ->
        d_step { before = now; now = base / RECORDS + 1; rounds++; begun = base + 1 }
    fi
}

/* Of record 0: worker `who`'s. */
inline tile_share(who)
{
#ifndef NO_OWN
    await(who, base);
#endif
    d_step { LOAD(LAST); assert(SEES(LAST, before)) };
    assert(place[LAST] == before);
    store(who, base / RECORDS + 1, false);
    shares++;
#ifdef NO_NEXT
    publish(who, base + 1)
#else
    publish(who, base + 1 + who)
#endif
}

inline last_share()
{
#ifndef NO_OWN
    await(0, base + 1);
#endif
    await(1, base + 1);
    d_step { LOAD(0); LOAD(1); assert(SEES(0, base / RECORDS + 1) && SEES(1, base / RECORDS + 1)) };
    assert(place[0] == base / RECORDS + 1 && place[1] == base / RECORDS + 1);
    if
    :: store(LAST, base / RECORDS + 1, true)
    :: store(LAST, base / RECORDS + 1, false)
    fi;
    shares++;
    publish(0, base + 2)
}

inline leave()
{
    atomic {
        !pending[me]; /* the end of the kernel */
        left++;
        empty_cache();
        if
        :: left == BLOCKS ->
            assert(shares == 3 * rounds && rounds > rounds_before);
            rounds_before = rounds;
#ifndef NO_RESET
            taken = 0;
            over = false;
#endif
            left = 0;
            stop = false; /* by the host, before it launches again */
            launch++
        :: else
        fi
    }
}

proctype block(byte me)
{
    byte mine, current, next, base, at;
    do
    :: mine < LAUNCHES ->
        launch == mine;
        d_step { current = taken; taken++ };
        do
        :: current < ROUNDS * A_ROUND ->
            d_step {
                next = taken;
                taken++;
                base = (mine * ROUNDS + current / A_ROUND) * RECORDS;
                at = current % A_ROUND
            };
#ifdef BACKWARDS
            at = (at == 0 -> 0 : A_ROUND - at);
#endif
            if
            :: at == 0 -> begin_round()
            :: else ->
#ifndef NO_BEGIN
                atomic { begun >= base + 1; ACQUIRE };
                if
                :: over -> break
                :: else
                fi;
#endif
                if
                :: at == 1 -> tile_share(0)
                :: at == 2 -> tile_share(1)
                :: at == 3 -> last_share()
                fi
            fi;
            current = next
        :: else -> break
        od;
        leave();
        mine++
    :: else -> break
    od
}

proctype memory(byte me)
{
end:
    do
    :: d_step {
           pending[me] ->
           place[where[me]] = what[me];
           stop = stop || stops[me];
           pending[me] = false
       }
    od
}

init
{
    byte me = 0;
    atomic {
        do
        :: me < BLOCKS ->
            empty_cache();
            run block(me);
            run memory(me);
            me++
        :: else -> break
        od
    }
}
