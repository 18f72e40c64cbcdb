/* Halos without credits: two ranks store into each other's halo, directly, and each one's message
 * carries the credit of the other's.
 *
 * In step m a rank sends into the peer's storage m % STORAGES, waits for the peer's message and
 * uses its halo. The peer's message m has left after its use of m - 1, so whoever has received it
 * may overwrite that: with two storages, as a swap gives, no credit is needed.
 *
 * Must hold: no halo is written in use, each step uses its own values. Mutants, which must fail:
 * STORAGES=1 (the message does not cover the use of this step), LATE_USE (the halo is used after
 * the next send: the carrier does not wait for its uses). */
#ifndef STORAGES
#define STORAGES 2
#endif
#define P 8
#define K 16
#define REACHED(word, value) ((((word) + K - (value)) % P) < P / 2)
#define HALO(rank, step) halo[(rank) * STORAGES + (step) % STORAGES]
#define USED(rank, step) used[(rank) * STORAGES + (step) % STORAGES]

byte flag[2];
byte halo[2 * STORAGES];
bool used[2 * STORAGES];

inline use(step)
{
    USED(me, step) = true;
    assert(HALO(me, step) == step);
    USED(me, step) = false
}

inline store(step)
{
    assert(!USED(1 - me, step));
    HALO(1 - me, step) = step;
    flag[1 - me] = step % P
}

proctype rank(byte me)
{
    byte m = 1;
#ifdef LATE_USE
    byte before;
    store(m);
    REACHED(flag[me], m % P);
    do
    :: true ->
        before = m;
        m = (m + 1) % K;
        store(m);
        REACHED(flag[me], m % P);
        use(before);
    od
#else
    do
    :: true ->
        store(m);
        REACHED(flag[me], m % P);
        use(m);
        m = (m + 1) % K
    od
#endif
}

init
{
    atomic {
        run rank(0);
        run rank(1)
    }
}
