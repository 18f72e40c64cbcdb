/* The keys of statements. */
#include "dsl/key_rows.h"

static const char when_doc[] =
    "the statement is done only if this holds. What decides communication, swaps and loops at "
    "run time must be equal on all ranks";
static const char name_doc[] = "a name for the statement, for `after` and messages";
static const char after_doc[] =
    "statements further up that must be complete before, for an order that accesses don't show";

/* What all statements have, in three rows. `label`: the member for the statement's name. */
#define STATEMENT_KEYS(type, label)                                                                \
    {"when", PEAL_KEY_CONDITION, false, NULL, when_doc, AT(type, when), .turn = -1},               \
        {"name", PEAL_KEY_NAME, false, NULL, name_doc, AT(type, label), .turn = -1},               \
    {                                                                                              \
        "after", PEAL_KEY_NAMES, false, NULL, after_doc, AT(type, after), .turn = -1               \
    }

static const peal_key task_keys[] = {
    {"task", PEAL_KEY_NAME, true, NULL, "the task's name", AT(peal_task_desc, name)},
    {"kernel", PEAL_KEY_NAME, false, NULL, "the PEAL_KERNEL; default: the task's name",
     AT(peal_task_desc, kernel)},
    {"box", PEAL_KEY_POINTS, false, NULL, "the points it visits; absent: it runs once",
     AT(peal_task_desc, box)},
    {"tile", PEAL_KEY_AXES, false, "whole",
     "extents of a tile, from where the box of this rank begins; along missing axes as long as "
     "that; `whole`: one tile a rank; default: peal chooses",
     AT(peal_task_desc, tile)},
    {"read", PEAL_KEY_ACCESSES, false, NULL, "what it reads", AT(peal_task_desc, read)},
    {"update", PEAL_KEY_ACCESSES, false, NULL, "what it reads and writes",
     AT(peal_task_desc, update)},
    {"write", PEAL_KEY_ACCESSES, false, NULL,
     "what it writes without needing the old value; what the kernel leaves out is undefined",
     AT(peal_task_desc, write)},
    {"reduce", PEAL_KEY_REDUCTIONS, false, NULL,
     "partial reduction: the combination of this rank's tiles, in a fixed tree by tile number",
     AT(peal_task_desc, reduce)},
    {"args", PEAL_KEY_ARGUMENTS, false, NULL,
     "values for the kernel: `long` or `double`, read when a tile starts",
     AT(peal_task_desc, args)},
    {"independent", PEAL_KEY_BOOLEAN, false, NULL,
     "true: promises that tiles never meet in one element, or write the same there; `args` may "
     "then "
     "not read what the task writes",
     AT(peal_task_desc, independent)},
    STATEMENT_KEYS(peal_task_desc, label)};

static const peal_key exchange_keys[] = {
    {"exchange", PEAL_KEY_EXCHANGE, true, NULL,
     "every halo point that another rank owns, or that is an image, gets its owner's value",
     AT(peal_exchange_desc, exchange)},
    STATEMENT_KEYS(peal_exchange_desc, name)};

static const peal_key send_keys[] = {
    {"send", PEAL_KEY_MESSAGE, true, NULL,
     "a buffer, a piece {b: [[first, end]]}, or a region {u: {border: d}}",
     AT(peal_message_desc, send)},
    {"to", PEAL_KEY_PEERS, true, NULL,
     "a direction [0, -1], a rank, {ranks: [0, 2]}, a constant list of ranks, all, {along: x}",
     AT(peal_message_desc, to)},
    {"tag", PEAL_KEY_EXPRESSION, false, NULL, "tells messages between two ranks apart; default 0",
     AT(peal_message_desc, tag)},
    {"offsets", PEAL_KEY_EXPRESSION, false, NULL,
     "a constant list o: peer k gets elements o[k] .. o[k+1]-1; a number m: k*m ..",
     AT(peal_message_desc, offsets)},
    {"count", PEAL_KEY_NAME, false, NULL,
     "an integer buffer n: of its block, peer k gets the first n[k] elements, known at run time",
     AT(peal_message_desc, count)},
    STATEMENT_KEYS(peal_message_desc, name)};

static const peal_key recv_keys[] = {
    {"recv", PEAL_KEY_MESSAGE, true, NULL,
     "a buffer, a piece {b: [[first, end]]}, or a region {u: {halo: d}}",
     AT(peal_message_desc, recv)},
    {"from", PEAL_KEY_PEERS, true, NULL,
     "a direction [0, -1], a rank, {ranks: [0, 2]}, a constant list of ranks, all, {along: x}",
     AT(peal_message_desc, from)},
    {"tag", PEAL_KEY_EXPRESSION, false, NULL, "tells messages between two ranks apart; default 0",
     AT(peal_message_desc, tag)},
    {"offsets", PEAL_KEY_EXPRESSION, false, NULL,
     "a constant list o: peer k's elements go to o[k] .. o[k+1]-1; a number m: k*m ..",
     AT(peal_message_desc, offsets)},
    {"count", PEAL_KEY_NAME, false, NULL,
     "an integer buffer n: n[k] says how many elements have come from peer k; the rest of its "
     "block "
     "is left as it was",
     AT(peal_message_desc, count)},
    STATEMENT_KEYS(peal_message_desc, name)};

static const peal_key allreduce_keys[] = {
    {"allreduce", PEAL_KEY_REDUCTIONS, true, NULL,
     "rank reduction: element by element, in a fixed tree by rank; everyone gets the same bits; "
     "sums of integers wrap in their type",
     AT(peal_rank_reduce_desc, reduce)},
    {"along", PEAL_KEY_WORD, false, "x y z", "within my row along this axis only",
     AT(peal_rank_reduce_desc, along)},
    STATEMENT_KEYS(peal_rank_reduce_desc, name)};

static const peal_key reduce_keys[] = {
    {"reduce", PEAL_KEY_REDUCTIONS, true, NULL, "rank reduction whose result one rank gets",
     AT(peal_rank_reduce_desc, reduce)},
    {"to", PEAL_KEY_EXPRESSION, true, NULL, "the rank that gets the result",
     AT(peal_rank_reduce_desc, to), .turn = 1},
    {"along", PEAL_KEY_WORD, false, "x y z", "within my row along this axis only",
     AT(peal_rank_reduce_desc, along)},
    STATEMENT_KEYS(peal_rank_reduce_desc, name)};

static const peal_key swap_keys[] = {
    {"swap", PEAL_KEY_PAIR, true, NULL,
     "two fields or buffers of one type and shape: their contents change places, without a copy",
     AT(peal_swap_desc, swap)},
    STATEMENT_KEYS(peal_swap_desc, name)};

static const peal_key set_keys[] = {
    {"set", PEAL_KEY_NAME, true, NULL, "a buffer of one element", AT(peal_set_desc, set)},
    {"value", PEAL_KEY_EXPRESSION, true, NULL,
     "its new value; an integer that the type cannot hold is refused, or ends the run (E078, "
     "E371); a real is rounded to the nearest of the type, beyond its largest to inf",
     AT(peal_set_desc, value)},
    STATEMENT_KEYS(peal_set_desc, name)};

static const peal_key print_keys[] = {{"print", PEAL_KEY_PRINT, true, NULL,
                                       "columns of a row of the run's table, from rank 0",
                                       AT(peal_print_row_desc, print)},
                                      STATEMENT_KEYS(peal_print_row_desc, name)};

static const peal_key load_keys[] = {{"load", PEAL_KEY_NAME, true, NULL,
                                      "a field (its global array) or a buffer (each rank's own)",
                                      AT(peal_file_desc, load)},
                                     {"file", PEAL_KEY_TEXT, true, NULL,
                                      "an .npy file; {rank}, {step:06}, counters and params",
                                      AT(peal_file_desc, file)},
                                     STATEMENT_KEYS(peal_file_desc, name)};

static const peal_key save_keys[] = {{"save", PEAL_KEY_NAME, true, NULL,
                                      "a field (its global array) or a buffer (each rank's own)",
                                      AT(peal_file_desc, save)},
                                     {"file", PEAL_KEY_TEXT, true, NULL,
                                      "an .npy file; {rank}, {step:06}, counters and params",
                                      AT(peal_file_desc, file)},
                                     STATEMENT_KEYS(peal_file_desc, name)};

static const peal_key repeat_keys[] = {
    {"repeat", PEAL_KEY_EXPRESSION, true, NULL, "how often, at most", AT(peal_loop_desc, repeat)},
    {"as", PEAL_KEY_NAME, false, NULL, "name of the counter: 0, 1, 2", AT(peal_loop_desc, as)},
    {"until", PEAL_KEY_CONDITION, false, NULL, "ends the loop after an iteration",
     AT(peal_loop_desc, until)},
    {"every", PEAL_KEY_EXPRESSION, false, NULL,
     "`until` is looked at after each n-th iteration only", AT(peal_loop_desc, every)},
    {"lag", PEAL_KEY_EXPRESSION, false, NULL, "acts on the verdict this many looks old",
     AT(peal_loop_desc, lag)},
    {"step", PEAL_KEY_STATEMENTS, true, NULL, "the loop's statements"},
    STATEMENT_KEYS(peal_loop_desc, name)};

static const peal_key for_keys[] = {
    {"for", PEAL_KEY_NAME, true, NULL,
     "name of a counter, which is a constant in each copy: it may stand in indexes u(l), sizes and "
     "all that is known before the run",
     AT(peal_for_desc, for_)},
    {"in", PEAL_KEY_LIST, true, NULL, "its values: [first, end], end excluded; may be none",
     AT(peal_for_desc, in)},
    {"down", PEAL_KEY_BOOLEAN, false, NULL, "true: from the last value to the first",
     AT(peal_for_desc, down)},
    {"do", PEAL_KEY_STATEMENTS, true, NULL,
     "what is copied; a statement whose `when` cannot hold in a copy is left out of it"}};

static const peal_key copy_keys[] = {
    {"copy", PEAL_KEY_NAMES, true, NULL,
     "fields whose values go into others of the same size and type, cut in another way or not at "
     "all: "
     "each point that a rank owns gets its owner's value; halos and ghost points stay",
     AT(peal_copy_desc, copy)},
    {"into", PEAL_KEY_NAMES, true, NULL, "these fields, one for each", AT(peal_copy_desc, into)},
    STATEMENT_KEYS(peal_copy_desc, name)};

const peal_context peal_statement_contexts[PEAL_CONTEXT_COUNT - PEAL_CONTEXT_TASK] = {
    {"task", "a task", "Runs a kernel on the points of a box, tile by tile.",
     "{task: relax, box: {u: {grow: -1}}, read: {u: {star: 1}}, write: un}", KEYS(task_keys),
     sizeof(peal_task_desc), .kind = PEAL_STATEMENT_TASK},
    {"exchange", "an exchange", "Fills halos.", "{exchange: [u, {v: {star: 1}}]}",
     KEYS(exchange_keys), sizeof(peal_exchange_desc), .kind = PEAL_STATEMENT_EXCHANGE},
    {"send", "a send", "Hands over a copy and never waits.", "{send: b, to: [1]}", KEYS(send_keys),
     sizeof(peal_message_desc), .kind = PEAL_STATEMENT_SEND, .twin = PEAL_CONTEXT_RECV},
    {"recv", "a recv", "Waits for its message.", "{recv: b, from: [-1]}", KEYS(recv_keys),
     sizeof(peal_message_desc), .kind = PEAL_STATEMENT_RECV, .twin = PEAL_CONTEXT_SEND},
    {"allreduce", "an allreduce", "Combines a buffer over ranks.", "{allreduce: {d2: sum}}",
     KEYS(allreduce_keys), sizeof(peal_rank_reduce_desc), .kind = PEAL_STATEMENT_REDUCE,
     .twin = PEAL_CONTEXT_REDUCE},
    {"reduce", "a reduce", "Combines a buffer over ranks, for one of them.",
     "{reduce: {d2: sum}, to: 0}", KEYS(reduce_keys), sizeof(peal_rank_reduce_desc),
     .kind = PEAL_STATEMENT_REDUCE},
    {"swap", "a swap", "Exchanges what two names mean.", "{swap: [u, un]}", KEYS(swap_keys),
     sizeof(peal_swap_desc), .kind = PEAL_STATEMENT_SWAP},
    {"set", "a set", "Gives a buffer of one element a value.", "{set: x, value: 2 * y}",
     KEYS(set_keys), sizeof(peal_set_desc), .kind = PEAL_STATEMENT_SET},
    {"print", "a print", "A row of the run's table.", "{print: {norm: sqrt(d2)}}", KEYS(print_keys),
     sizeof(peal_print_row_desc), .kind = PEAL_STATEMENT_PRINT},
    {"load", "a load", "Reads a file.", "{load: u, file: \"in.npy\"}", KEYS(load_keys),
     sizeof(peal_file_desc), .kind = PEAL_STATEMENT_LOAD, .twin = PEAL_CONTEXT_SAVE},
    {"save", "a save", "Writes a file.", "{save: u, file: \"u-{step}.npy\"}", KEYS(save_keys),
     sizeof(peal_file_desc), .kind = PEAL_STATEMENT_SAVE, .twin = PEAL_CONTEXT_LOAD},
    {"repeat", "a loop", "Repeats statements.", "{repeat: 3, as: k, step: [{exchange: u}]}",
     KEYS(repeat_keys), sizeof(peal_loop_desc), .kind = PEAL_STATEMENT_REPEAT},
    {"copy", "a copy", "Brings fields from one cut to another: gathers, scatters.",
     "{copy: c, into: f}", KEYS(copy_keys), sizeof(peal_copy_desc),
     .kind = PEAL_STATEMENT_EXCHANGE},
    {"for", "copies",
     "Statements written once for several values of a counter, and copied before the run. A task "
     "of a "
     "copy is called relax(2).",
     "{for: l, in: [0, 3], do: [{exchange: u(l)}]}", KEYS(for_keys), sizeof(peal_for_desc),
     .kind = PEAL_STATEMENT_REPEAT}};
