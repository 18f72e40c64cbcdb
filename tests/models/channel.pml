/* The channel protocol: one rank sends to another without end, through SLOTS slots of the
 * receiver's memory, with a flag there and a credit in the sender's.
 *
 * Message m has the flag value m modulo P, and a wait is the cyclic >= of words modulo P, as the
 * 64-bit words of a schedule have P values. Contents are numbered modulo K, a multiple of P and of
 * SLOTS, so an old or a newer message in a slot is noticed. Spin interleaves single statements:
 * what stands between `writing` and its end may be seen half done.
 *
 * Must hold: no slot is written while it is read or before it was read, each message is read once
 * and whole, and nobody waits for ever. Mutants, which must fail: DROP_CREDIT (the sender does not
 * wait), DROP_WAIT (the receiver does not), EARLY_CREDIT (given before the slot was read), and P
 * not above twice the lead.
 *
 * LEAD: an inner loop of so many messages, with a receive above it whose send stands below it. The
 * receiver comes to the loop when the sender has gone through it, so there must be as many slots.
 * (The message of that send is a channel of its own, here a count of rounds.) */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef P
#define P 4
#endif
#define K (4 * SLOTS * P)

#define REACHED(word, value) ((((word) + K - (value)) % P) < P / 2 + P % 2)

#ifdef LEAD
#define ROUNDS 8
byte through, begun; /* rounds that the sender is through, that the receiver has begun */
#endif

byte flag, credit;
byte content[SLOTS];
bool writing[SLOTS], reading[SLOTS], fresh[SLOTS];

active proctype sender()
{
    byte m = 1, free_slots = SLOTS, slot;
#ifdef LEAD
    byte sent = 0;
#endif
    do
    :: true ->
        slot = m % SLOTS;
#ifndef DROP_CREDIT
        if
        :: free_slots > 0 -> free_slots-- /* the first messages find free slots */
        :: else -> REACHED(credit, (m + K - SLOTS) % P)
        fi;
#endif
        assert(!reading[slot] && !fresh[slot]);
        writing[slot] = true;
        content[slot] = m;
        fresh[slot] = true;
        writing[slot] = false;
        flag = m % P;
#ifdef LEAD
        sent++;
        if
        :: sent == LEAD -> sent = 0; through = (through + 1) % ROUNDS; (through + ROUNDS - begun) % ROUNDS < 3
        :: else
        fi;
#endif
        m = (m + 1) % K
    od
}

active proctype receiver()
{
    byte m = 1, slot;
#ifdef LEAD
    byte received = 0;
#endif
    do
    :: true ->
#ifdef LEAD
        if
        :: received == 0 -> through != begun; begun = (begun + 1) % ROUNDS
        :: else
        fi;
        received = (received + 1) % LEAD;
#endif
        slot = m % SLOTS;
#ifndef DROP_WAIT
        REACHED(flag, m % P);
#endif
#ifdef EARLY_CREDIT
        credit = m % P;
#endif
        assert(!writing[slot] && fresh[slot] && content[slot] == m);
        reading[slot] = true;
        assert(content[slot] == m);
        fresh[slot] = false;
        reading[slot] = false;
#ifndef EARLY_CREDIT
        credit = m % P;
#endif
        m = (m + 1) % K
    od
}
