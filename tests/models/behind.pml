/* Folds of mode fused on GPUs that run behind the steps: a block writes a partial, step after step,
 * another one folds it and leaves the result, a third one, of the peer, sends what it has folded
 * into a slot here, and a fourth one combines both and gives the slot back. Partials, and what the
 * fold leaves, lie in SCRATCH places by turns.
 *
 * An epoch counts the steps that a block is through with; a wait says how many of them a block may
 * be behind: a step writes over the partial that the fold of SCRATCH steps ago has read; the fold
 * over what the combination of SCRATCH steps ago has; and a message goes into the slot of that of
 * SLOTS steps ago. Contents, epochs, flag and credit are numbered modulo K.
 *
 * Stores are seen late: until `memory` brings them, at the latest when something that comes behind
 * them is released. The combination releases its credit and its epoch at a time, by two threads:
 * neither waits for the other.
 *
 * Must hold: who reads sees what that step has left, from the begin of the read to its end, and
 * nobody waits for ever. Mutants, which must fail: FAR_BEHIND (the fold may be a step more behind),
 * FEW_SCRATCH (a place less than waits say), FEW_SLOTS, NO_CREDIT, NO_EPOCH (of the fold, which the
 * combination waits for), EARLY_EPOCH (released before the stores have come), EARLY_FLAG,
 * NEVER_BEHIND (the fold and the combination of the same step are waited for: nobody goes on). */
#define SCRATCH 3
#define SLOTS 3
#define K 8
#define REACHED(word, value) ((((word) + K - (value)) % K) < K / 2)
#define BACK(step, n) (((step) + K - (n)) % K)

#ifdef FEW_SCRATCH
#define PLACE(step) ((step) % (SCRATCH - 1))
#else
#define PLACE(step) ((step) % SCRATCH)
#endif
#ifdef FEW_SLOTS
#define SLOT(step) ((step) % (SLOTS - 1))
#else
#define SLOT(step) ((step) % SLOTS)
#endif
#if defined(FAR_BEHIND)
#define BEHIND (SCRATCH + 1)
#elif defined(NEVER_BEHIND)
#define BEHIND 0
#else
#define BEHIND SCRATCH
#endif

mtype = { STEP, FOLD, PEER, COMBINE };
byte epoch[5], flag, credit; /* by mtype */
byte part[SCRATCH], left[SCRATCH], slot[SLOTS];
bool pending[5];  /* a store that is on its way, */
byte storing[5];  /* of which step, */
byte place_of[5]; /* where to */

inline store(what, step, place)
{
    d_step { storing[what] = step; place_of[what] = place; pending[what] = true }
}

inline release(what, word, value, early)
{
    if
    :: early -> word = value
    :: else -> atomic { !pending[what]; word = value }
    fi
}

#ifdef EARLY_EPOCH
#define HURRIES true
#else
#define HURRIES false
#endif
#ifdef EARLY_FLAG
#define SENDS_EARLY true
#else
#define SENDS_EARLY false
#endif

inline next()
{
    d_step { k = (k + 1) % K; turn = (turn + 1) % 6 }
}

active proctype step()
{
    byte k = 1, turn = 1;
    do
    :: REACHED(epoch[FOLD], BACK(k, BEHIND));
        store(STEP, k, PLACE(turn));
        release(STEP, epoch[STEP], k, HURRIES);
        next()
    od
}

active proctype fold()
{
    byte k = 1, turn = 1;
    do
    :: REACHED(epoch[STEP], k);
        REACHED(epoch[COMBINE], BACK(k, BEHIND));
        assert(part[PLACE(turn)] == k);
        d_step { /* the read's end */
            assert(part[PLACE(turn)] == k)
        };
        store(FOLD, k, PLACE(turn));
        release(FOLD, epoch[FOLD], k, HURRIES);
        next()
    od
}

active proctype peer()
{
    byte k = 1, turn = 1;
    do
    ::
#ifdef NO_CREDIT
        REACHED(flag, BACK(k, 1));
#else
        REACHED(credit, BACK(k, SLOTS));
#endif
        store(PEER, k, SLOT(turn));
        release(PEER, flag, k, SENDS_EARLY);
        next()
    od
}

active proctype combine()
{
    byte k = 1, turn = 1;
    do
    ::
#ifndef NO_EPOCH
        REACHED(epoch[FOLD], k);
#endif
        REACHED(flag, k);
        assert(left[PLACE(turn)] == k && slot[SLOT(turn)] == k);
        d_step { /* the read's end */
            assert(left[PLACE(turn)] == k && slot[SLOT(turn)] == k)
        };
        if
        :: credit = k; epoch[COMBINE] = k
        :: epoch[COMBINE] = k; credit = k
        fi;
        next()
    od
}

/* Brings stores to where they can be seen. */
active proctype memory()
{
end:
    do
    :: d_step { pending[STEP] -> part[place_of[STEP]] = storing[STEP]; pending[STEP] = false }
    :: d_step { pending[FOLD] -> left[place_of[FOLD]] = storing[FOLD]; pending[FOLD] = false }
    :: d_step { pending[PEER] -> slot[place_of[PEER]] = storing[PEER]; pending[PEER] = false }
    od
}
