/* Messages between hosts: what a sender packs into slots of its own goes into those of the receiver,
 * plan after plan, over a connection that outlives plans.
 *
 * A word behind the packed slot (the trigger) says which messages are due; who posts may look at it
 * late, when it was raised more than once. A frame says plan, number and contents. The receiver's
 * engine stores contents, then the flag; the receiver consumes and gives credits, which go back the
 * same way. Plan 1 ends at the receiver before it has consumed all, as a loop whose condition holds
 * does: what is on its way then is late, and the memory belongs to plan 2, whose numbers begin anew.
 * REORDER: messages arrive in any order, as long ones that are fetched do.
 *
 * Must hold: a message that is read is whole, of its plan and the one awaited; a frame of the plan
 * that there is has a number that may come; nobody waits for ever. Mutants, which must fail:
 * POST_LATEST (only the last of the messages that are due is posted), NO_CREDIT (the sender does not
 * wait for slots), FLAG_FIRST (the flag is stored before the contents), NO_PLAN (frames do not say
 * which plan they are of), NO_LOCK (a plan ends while the engine stores for it), EARLY_START (a plan
 * sends before the receiver has it), NO_JOIN (a plan ends while who posts still looks), NO_ORDER (the flag is raised to what has come, REORDER). */
#ifndef SLOTS
#define SLOTS 2
#endif
#define PLANS 2
#define MESSAGES 4
#define P 8 /* numbers wrap */
#define CONSUMED(plan) (plan == 1 -> MESSAGES - SLOTS : MESSAGES)
#define CONTENT(plan, m) ((plan) * 16 + (m))

/* There and back: plan, number, contents; plan, credit. */
chan wire = [SLOTS + 2] of {byte, byte, byte};
chan back = [SLOTS + 2] of {byte, byte};

byte sender_plan, receiver_plan; /* 0: none */
bool receiver_has[PLANS + 1];
byte packed[SLOTS], trigger, posted, credit; /* of the sender */
byte slot[SLOTS], flag, received;            /* of the receiver */
bool has_come[2 * SLOTS];
bool posting; /* the poster is at what it has seen */
bool storing; /* the engine is at a frame: a plan ends only between two */
bool sender_is_done, receiver_is_done;

active proctype sender()
{
    byte plan = 1, m;
    do
    :: plan > PLANS -> break
    :: else ->
        d_step { trigger = 0; posted = 0; credit = 0; sender_plan = plan; }
#ifndef EARLY_START
        receiver_has[plan];
#endif
        m = 1;
        do
        :: m > MESSAGES -> break
        :: else ->
#ifndef NO_CREDIT
            /* The receiver has consumed the message that the slot held, or has ended its plan. */
            if
            :: (credit + P + SLOTS - m) % P < P / 2
            :: receiver_plan != plan && receiver_has[plan] -> break
            fi;
#endif
            packed[m % SLOTS] = CONTENT(plan, m);
            trigger = m % P;
            m++
        od;
        posted == trigger; /* all that is due has been sent, */
#ifndef NO_JOIN
        !posting; /* and nobody looks any more */
#endif
        plan++
    od;
    sender_is_done = true
}

/* Of the sender: looks at the trigger now and then. */
active proctype poster()
{
    byte value, plan;
    do
    :: posted != trigger ->
        d_step { value = trigger; plan = sender_plan; posting = true; }
        do
        :: posted == value -> posting = false; break
        :: else ->
#ifdef POST_LATEST
            posted = (value + P - 1) % P;
#endif
            /* Contents are read when the connection takes them. */
            atomic {
                nfull(wire);
                wire!plan, (posted + 1) % P, packed[(posted + 1) % SLOTS];
                posted = (posted + 1) % P
            }
        od
    :: sender_is_done -> break
    od
}

/* Of the receiver: its engine. */
active proctype engine()
{
    byte plan, value, contents, i;
    do
    :: atomic {
#ifdef REORDER
        wire??[plan, value, contents] || nempty(wire);
        if
        :: wire?plan, value, contents
        :: len(wire) > 1 -> /* the second one */
            wire?plan, value, contents;
            wire!plan, value, contents;
            wire?plan, value, contents
        fi;
#else
        wire?plan, value, contents;
#endif
#ifndef NO_LOCK
        storing = true
#endif
       };
#ifdef NO_PLAN
        plan = receiver_plan;
#endif
        if
        :: plan != receiver_plan || plan == 0 /* late: skipped */
        :: else ->
#ifdef REORDER
            assert((value + P - received) % P > 0 && (value + P - received) % P <= SLOTS && !has_come[value % (2 * SLOTS)]);
#else
            assert(value == (received + 1) % P);
#endif
#ifdef FLAG_FIRST
            flag = value;
            received = value;
            slot[value % SLOTS] = contents;
#else
            slot[value % SLOTS] = contents;
#ifdef REORDER
            d_step {
#ifdef NO_ORDER
                received = value;
#else
                has_come[value % (2 * SLOTS)] = true;
                do
                :: has_come[(received + 1) % (2 * SLOTS)] ->
                    received = (received + 1) % P;
                    has_come[received % (2 * SLOTS)] = false
                :: else -> break
                od;
#endif
                flag = received
            }
#else
            received = value;
            flag = value
#endif
#endif
        fi;
        storing = false
    :: sender_is_done && receiver_is_done && empty(wire) -> break
    od
}

active proctype receiver()
{
    byte plan = 1, m, i;
    do
    :: plan > PLANS -> break
    :: else ->
        d_step {
            flag = 0;
            received = 0;
            i = 0;
            do
            :: i < SLOTS -> slot[i] = 0; has_come[i] = false; has_come[i + SLOTS] = false; i++
            :: else -> break
            od;
            receiver_plan = plan;
            receiver_has[plan] = true
        }
        m = 1;
        do
        :: m > CONSUMED(plan) -> break
        :: else ->
            (flag + P - m) % P < P / 2;
            assert(slot[m % SLOTS] == CONTENT(plan, m));
            back!plan, m % P;
            m++
        od;
#ifdef NO_LOCK
        receiver_plan = 0;
#else
        atomic { !storing -> receiver_plan = 0 }
#endif
        plan++
    od;
    receiver_is_done = true
}

/* Of the sender: credits. */
active proctype taker()
{
    byte plan, value;
    do
    :: back?plan, value ->
        d_step {
            if
            :: plan == sender_plan -> credit = value
            :: else
            fi
        }
    :: sender_is_done && receiver_is_done && empty(back) -> break
    od
}
