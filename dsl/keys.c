/* The keys of the language, context by context. */
#include "dsl/keys.h"

#include <string.h>

#define KEYS(list) list, (int)(sizeof(list) / sizeof((list)[0]))

#define STATEMENT_KEYS                                                                             \
    {"when", PEAL_KEY_CONDITION, false, NULL,                                                      \
     "the statement is done only if this holds. What decides communication, swaps and loops at "   \
     "run time must be equal on all ranks"},                                                       \
        {"name", PEAL_KEY_NAME, false, NULL,                                                       \
         "a name for the statement, for `after` and messages"},                                    \
    {                                                                                              \
        "after", PEAL_KEY_NAMES, false, NULL,                                                      \
            "statements further up that must be complete before, for an order that accesses "      \
            "don't show"                                                                           \
    }

static const peal_key spec_keys[] = {
    {"peal", PEAL_KEY_VERSION, true, NULL, "version of the language: 1"},
    {"name", PEAL_KEY_TEXT, false, NULL, "name in output; default: the file's"},
    {"params", PEAL_KEY_PARAMS, false, NULL,
     "named values, typed by their default (integer, real, boolean, text); `--set` overrides them"},
    {"topology", PEAL_KEY_TOPOLOGY, false, NULL,
     "how ranks lie in a grid; without: auto on every axis of the first field, none periodic"},
    {"kernels", PEAL_KEY_TEXTS, false, NULL,
     "C files with the tasks' kernels, in the spec's folder"},
    {"fields", PEAL_KEY_FIELDS, false, NULL,
     "global arrays that are cut into a part for each rank"},
    {"buffers", PEAL_KEY_BUFFERS, false, NULL, "arrays that each rank has for itself"},
    {"setup", PEAL_KEY_STATEMENTS, false, NULL, "statements done once, before the steps"},
    {"repeat", PEAL_KEY_EXPRESSION, false, NULL, "number of steps, at most; default 1"},
    {"until", PEAL_KEY_CONDITION, false, NULL, "ends the steps after one for which it holds"},
    {"every", PEAL_KEY_EXPRESSION, false, NULL, "`until` is looked at after each n-th step only"},
    {"lag", PEAL_KEY_EXPRESSION, false, NULL,
     "acts on the verdict this many looks old; the first ones never stop"},
    {"step", PEAL_KEY_STATEMENTS, false, NULL, "statements of one step"},
    {"finish", PEAL_KEY_STATEMENTS, false, NULL,
     "statements done once, after the steps; `step` is the number of steps done"},
    {"require", PEAL_KEY_TEXTS, false, NULL,
     "modes or transports without which the run is refused"},
    {"fma", PEAL_KEY_BOOLEAN, false, NULL,
     "true: kernels may be contracted to fused multiply-adds, equal bits are given up"}};

static const peal_key machine_keys[] = {
    {"machine", PEAL_KEY_VERSION, true, NULL, "version of machine files: 1"},
    {"ranks", PEAL_KEY_COUNT, false, NULL, "ranks of the job; default: one a process"},
    {"processes", PEAL_KEY_COUNT, false, NULL,
     "processes that host the ranks in blocks; default: one a rank"},
    {"workers", PEAL_KEY_COUNT, false, NULL,
     "threads that execute one rank's tiles; default: this machine's cores, shared"},
    {"cache_bytes", PEAL_KEY_COUNT, false, NULL,
     "of one core: what a tile's data should fit in; default 1048576"},
    {"accelerator", PEAL_KEY_BOOLEAN, false, NULL,
     "true: devices are GPUs, of which a rank has one; default false: cores, of which a rank has "
     "one a worker"},
    {"devices", PEAL_KEY_COUNT, false, NULL, "devices of a node; default 1"},
    {"nodes", PEAL_KEY_COUNT, false, NULL,
     "nodes, whose devices the ranks share if they are more; default: as many as the ranks need"},
    {"modes", PEAL_KEY_MODES, false, NULL,
     "what operations take, by mode: `sync`, `stream`, `graph`, `fused`, and `serial`, which else "
     "has the times of `sync`"},
    {"kernels", PEAL_KEY_KERNELS, false, NULL,
     "what kernels take, by name of the task or of its kernel; `default`: those of the other "
     "tasks"},
    {"links", PEAL_KEY_LINKS, false, NULL,
     "what messages take, by what lies between two ranks: `device` (they share one), `p2p` "
     "(devices "
     "of a node), `host` (a node's memory), `network` (nodes). One without `device` uses `p2p`, "
     "without `p2p` `host`"}};

static const peal_key mode_times_keys[] = {
    {"launch_s", PEAL_KEY_SECONDS, false, NULL,
     "the CPU launches a kernel; graph: a whole step; fused: the whole run; default 0"},
    {"post_s", PEAL_KEY_SECONDS, false, NULL,
     "stream: the CPU puts a copy, write or wait onto a lane; default 0"},
    {"kernel_s", PEAL_KEY_SECONDS, false, NULL,
     "a kernel begins and ends, beside what it computes; default 0"},
    {"copy_s", PEAL_KEY_SECONDS, false, NULL,
     "a copy begins and ends, beside its bytes; default 0"},
    {"write_s", PEAL_KEY_SECONDS, false, NULL,
     "a lane is through with the write of a flag; default 0"},
    {"wait_s", PEAL_KEY_SECONDS, false, NULL,
     "a lane goes on after a wait, once the flag has come; default 0"},
    {"synchronize_s", PEAL_KEY_SECONDS, false, NULL,
     "sync and serial: the CPU knows that a kernel has ended; default 0"},
    {"stretch", PEAL_KEY_RATE, false, NULL,
     "what kernels do with points and bytes takes so many times as long as `kernels` say; default "
     "1"},
    {"apart", PEAL_KEY_BOOLEAN, false, NULL,
     "stream, graph and fused: true: messages are sent and received side by side, as by blocks of "
     "a "
     "kernel; default false: on the schedule's lanes, one after the other"},
    {"kernels", PEAL_KEY_KERNELS, false, NULL,
     "what launches take in this mode, by name of the task or of its kernel, all in all: nothing "
     "is added; before those of the machine file's own `kernels`"}};

static const peal_key kernel_times_keys[] = {
    {"fixed_s", PEAL_KEY_SECONDS, false, NULL, "a launch, however small; default 0"},
    {"per_point_s", PEAL_KEY_SECONDS, false, NULL, "a point of the task's box; default 0"},
    {"per_byte_s", PEAL_KEY_SECONDS, false, NULL,
     "a byte of the elements that the accesses touch (twice for `update`); default 0"},
    {"launch_s", PEAL_KEY_SECONDS, false, NULL,
     "among the kernels of mode stream: the CPU puts it onto a lane; default 0"}};

static const peal_key link_times_keys[] = {
    {"latency_s", PEAL_KEY_SECONDS, false, NULL,
     "from the end of a flag's write to its arrival; default 0"},
    {"bytes_per_s", PEAL_KEY_RATE, true, NULL, "bytes a second in one direction"},
    {"shared", PEAL_KEY_WORD, false, "none device node",
     "which messages pass one after the other, in each direction: none (default), those of a "
     "`device`, those of a `node`"}};

static const peal_key param_keys[] = {
    {"value", PEAL_KEY_LITERAL, true, NULL, "the default, which also gives the type"},
    {"min", PEAL_KEY_LITERAL, false, NULL, "least value that is accepted"},
    {"max", PEAL_KEY_LITERAL, false, NULL, "greatest value that is accepted"}};

static const peal_key topology_keys[] = {
    {"dims", PEAL_KEY_AXES, false, "auto",
     "ranks along x, y, z; `auto`: the factors by which the busiest rank receives the fewest halo "
     "points"},
    {"periodic", PEAL_KEY_BOOLEANS, false, NULL,
     "whether the last rank's neighbour is the first one; one value: for all axes"}};

static const peal_key field_keys[] = {
    {"like", PEAL_KEY_NAME, false, NULL, "copies another field's keys; those beside it replace"},
    {"type", PEAL_KEY_WORD, false, "f64 f32 i32 i64 u8", "type of an element; default f64"},
    {"size", PEAL_KEY_AXES, false, NULL,
     "global extent by axis, x (contiguous) first, 1 to 4 axes; needed unless `like` gives it"},
    {"halo", PEAL_KEY_AMOUNT, false, NULL, "what a rank stores beyond its part; default 0"},
    {"align", PEAL_KEY_AXES, false, NULL, "parts are cut at multiples of this only"},
    {"stagger", PEAL_KEY_AXES, false, NULL,
     "points more along an axis, at the last rank (periodic: none)"},
    {"coarsen", PEAL_KEY_AXES, false, NULL,
     "every n-th point: this field lives where n times its coordinate lives"}};

static const peal_key buffer_keys[] = {
    {"type", PEAL_KEY_WORD, false, "f64 f32 i32 i64 u8", "type of an element; default f64"},
    {"count", PEAL_KEY_EXPRESSION, false, NULL, "elements; default 1; may differ by rank"},
    {"box", PEAL_KEY_POINTS, false, NULL, "shaped and addressed as this box"},
    {"file", PEAL_KEY_TEXT, false, NULL,
     "a 1-D .npy file that gives size and contents: \"peers-{rank}.npy\""},
    {"values", PEAL_KEY_LIST, false, NULL, "contents"},
    {"keep", PEAL_KEY_BOOLEAN, false, NULL, "true: the contents are defined after a run"}};

static const peal_key box_keys[] = {
    {"grow", PEAL_KEY_AMOUNT, false, NULL,
     "the field grown into its ghost points, or shrunk (negative)"},
    {"rim", PEAL_KEY_AMOUNT, false, NULL, "the points within this of the field's ends: walls"},
    {"box", PEAL_KEY_RANGES, false, NULL,
     "these coordinates, ends excluded, ghost points too; further axes whole"},
    {"border", PEAL_KEY_DIRECTION, false, NULL,
     "what the neighbour in this direction has in its halo of mine"},
    {"halo", PEAL_KEY_DIRECTION, false, NULL,
     "my halo points that the neighbour in this direction owns"},
    {"part", PEAL_KEY_PART, false, NULL,
     "`interior`: of those, the ones at least the halo's width from every neighbouring rank; "
     "`boundary`: the rest; an amount: also my halo points within it"}};

static const peal_key counted_keys[] = {
    {"count", PEAL_KEY_EXPRESSION, true, NULL,
     "how many points, known at run time; below 0 or above `max` the run ends with an error"},
    {"max", PEAL_KEY_EXPRESSION, true, NULL, "at most that many"}};

static const peal_key access_keys[] = {
    {"grow", PEAL_KEY_AMOUNT, false, NULL, "the tile grown, corners included"},
    {"star", PEAL_KEY_AMOUNT, false, NULL, "the tile grown along one axis at a time"},
    {"per_tile", PEAL_KEY_EXPRESSION, false, NULL,
     "elements k*n .. k*n + n-1 in tile k; the kernel sees them as b[0] .. b[n-1]"},
    {"box", PEAL_KEY_RANGES, false, NULL, "these ranges, beside `stale`"},
    {"whole", PEAL_KEY_BOOLEAN, false, NULL, "true: all of it, beside `stale`"},
    {"stale", PEAL_KEY_WORD, false, "ok",
     "`ok`: halo points may be read although their owners have changed them since (else E148)"}};

static const peal_key exchange_item_keys[] = {{"grow", PEAL_KEY_AMOUNT, false, NULL,
                                               "only that much of the halo, corners included"},
                                              {"star", PEAL_KEY_AMOUNT, false, NULL,
                                               "only that much of the halo, without corners"}};

static const peal_key piece_keys[] = {
    {"border", PEAL_KEY_DIRECTION, false, NULL,
     "what the neighbour in this direction has in its halo of mine"},
    {"halo", PEAL_KEY_DIRECTION, false, NULL,
     "my halo points that the neighbour in this direction owns"}};

static const peal_key peers_keys[] = {
    {"along", PEAL_KEY_WORD, true, "x y z", "all ranks of my row along this axis, me included"}};

static const peal_key task_keys[] = {
    {"task", PEAL_KEY_NAME, true, NULL, "the task's name"},
    {"kernel", PEAL_KEY_NAME, false, NULL, "the PEAL_KERNEL; default: the task's name"},
    {"box", PEAL_KEY_POINTS, false, NULL, "the points it visits; absent: it runs once"},
    {"tile", PEAL_KEY_AXES, false, "whole",
     "extents of a tile, missing ones are the whole axis; `whole`: one tile; default: peal "
     "chooses"},
    {"read", PEAL_KEY_ACCESSES, false, NULL, "what it reads"},
    {"update", PEAL_KEY_ACCESSES, false, NULL, "what it reads and writes"},
    {"write", PEAL_KEY_ACCESSES, false, NULL,
     "what it writes without needing the old value; what the kernel leaves out is undefined"},
    {"reduce", PEAL_KEY_REDUCTIONS, false, NULL,
     "partial reduction: the combination of this rank's tiles, in a fixed tree by tile number"},
    {"args", PEAL_KEY_LIST, false, NULL,
     "values for the kernel: `long` or `double`, read when a tile starts"},
    {"independent", PEAL_KEY_BOOLEAN, false, NULL,
     "true: promises that tiles never meet in one element, or write the same there; `args` may "
     "then "
     "not read what the task writes"},
    STATEMENT_KEYS};

static const peal_key exchange_keys[] = {
    {"exchange", PEAL_KEY_EXCHANGE, true, NULL,
     "every halo point that another rank owns, or that is an image, gets its owner's value"},
    STATEMENT_KEYS};

static const peal_key send_keys[] = {
    {"send", PEAL_KEY_MESSAGE, true, NULL,
     "a buffer, a piece {b: [[first, end]]}, or a region {u: {border: d}}"},
    {"to", PEAL_KEY_PEERS, true, NULL,
     "a direction [0, -1], a rank, a constant list of ranks, all, {along: x}"},
    {"tag", PEAL_KEY_EXPRESSION, false, NULL, "tells messages between two ranks apart; default 0"},
    {"offsets", PEAL_KEY_EXPRESSION, false, NULL,
     "a constant list o: peer k gets elements o[k] .. o[k+1]-1; a number m: k*m .."},
    {"count", PEAL_KEY_NAME, false, NULL,
     "an integer buffer n: of its block, peer k gets the first n[k] elements, known at run time"},
    STATEMENT_KEYS};

static const peal_key recv_keys[] = {
    {"recv", PEAL_KEY_MESSAGE, true, NULL,
     "a buffer, a piece {b: [[first, end]]}, or a region {u: {halo: d}}"},
    {"from", PEAL_KEY_PEERS, true, NULL,
     "a direction [0, -1], a rank, a constant list of ranks, all, {along: x}"},
    {"tag", PEAL_KEY_EXPRESSION, false, NULL, "tells messages between two ranks apart; default 0"},
    {"offsets", PEAL_KEY_EXPRESSION, false, NULL,
     "a constant list o: peer k's elements go to o[k] .. o[k+1]-1; a number m: k*m .."},
    {"count", PEAL_KEY_NAME, false, NULL,
     "an integer buffer n: n[k] says how many elements have come from peer k; the rest of its "
     "block "
     "is left as it was"},
    STATEMENT_KEYS};

static const peal_key allreduce_keys[] = {
    {"allreduce", PEAL_KEY_REDUCTIONS, true, NULL,
     "rank reduction: element by element, in a fixed tree by rank; everyone gets the same bits; "
     "sums of integers wrap in their type"},
    {"along", PEAL_KEY_WORD, false, "x y z", "within my row along this axis only"},
    STATEMENT_KEYS};

static const peal_key reduce_keys[] = {
    {"reduce", PEAL_KEY_REDUCTIONS, true, NULL, "rank reduction whose result one rank gets"},
    {"to", PEAL_KEY_EXPRESSION, true, NULL, "the rank that gets the result"},
    {"along", PEAL_KEY_WORD, false, "x y z", "within my row along this axis only"},
    STATEMENT_KEYS};

static const peal_key swap_keys[] = {
    {"swap", PEAL_KEY_PAIR, true, NULL,
     "two fields or buffers of one type and shape: their contents change places, without a copy"},
    STATEMENT_KEYS};

static const peal_key set_keys[] = {
    {"set", PEAL_KEY_NAME, true, NULL, "a buffer of one element"},
    {"value", PEAL_KEY_EXPRESSION, true, NULL,
     "its new value; an integer that the type cannot hold is refused, or ends the run (E078, "
     "E371); a real is rounded to the nearest of the type, beyond its largest to inf"},
    STATEMENT_KEYS};

static const peal_key print_keys[] = {{"print", PEAL_KEY_PRINT, true, NULL,
                                       "columns of a row of the run's table, from rank 0"},
                                      STATEMENT_KEYS};

static const peal_key load_keys[] = {{"load", PEAL_KEY_NAME, true, NULL,
                                      "a field (its global array) or a buffer (each rank's own)"},
                                     {"file", PEAL_KEY_TEXT, true, NULL,
                                      "an .npy file; {rank}, {step}, counters and params"},
                                     STATEMENT_KEYS};

static const peal_key save_keys[] = {{"save", PEAL_KEY_NAME, true, NULL,
                                      "a field (its global array) or a buffer (each rank's own)"},
                                     {"file", PEAL_KEY_TEXT, true, NULL,
                                      "an .npy file; {rank}, {step}, counters and params"},
                                     STATEMENT_KEYS};

static const peal_key repeat_keys[] = {
    {"repeat", PEAL_KEY_EXPRESSION, true, NULL, "how often, at most"},
    {"as", PEAL_KEY_NAME, false, NULL, "name of the counter: 0, 1, 2"},
    {"until", PEAL_KEY_CONDITION, false, NULL, "ends the loop after an iteration"},
    {"every", PEAL_KEY_EXPRESSION, false, NULL,
     "`until` is looked at after each n-th iteration only"},
    {"lag", PEAL_KEY_EXPRESSION, false, NULL, "acts on the verdict this many looks old"},
    {"step", PEAL_KEY_STATEMENTS, true, NULL, "the loop's statements"},
    STATEMENT_KEYS};

static const peal_context contexts[PEAL_CONTEXT_COUNT] = {
    {"machine", "a machine file",
     "A file of its own, for `--machine FILE.yaml` of plan, check, explain and simulate: whose "
     "schedules they look at, and (modes, kernels, links) what takes how long there.",
     "{machine: 1, processes: 2, workers: 4, cache_bytes: 2097152}", KEYS(machine_keys)},
    {"mode_times", "times of a mode", "Seconds, of a machine file's `modes`.",
     "{launch_s: 2e-6, kernel_s: 1e-6}", KEYS(mode_times_keys)},
    {"kernel_times", "times of a kernel",
     "fixed_s + points * per_point_s + bytes * per_byte_s with all of a GPU, or with one core; of "
     "a machine file's `kernels`, or of a mode's. A mode can also have times of copies, with the "
     "flags beside them: `send exchange u`, `unpack ...`, `local ...`; in sync, where waits are "
     "launched, also `wait ...`.",
     "{fixed_s: 1e-6, per_byte_s: 2.5e-13}", KEYS(kernel_times_keys)},
    {"link_times", "a link", "What lies between two ranks, of a machine file's `links`.",
     "{latency_s: 1.4e-6, bytes_per_s: 360e9}", KEYS(link_times_keys)},
    {"spec", "a spec", "The keys of a spec. A list of one item needs no brackets.",
     "{peal: 1, fields: {u: {size: 8}}}", KEYS(spec_keys)},
    {"param", "a param", "A param with a range, instead of a value alone.",
     "{value: 8, min: 1, max: 64}", KEYS(param_keys)},
    {"topology", "the topology", "rank = rx + Rx * (ry + Ry * rz).",
     "{dims: [2, auto], periodic: [false, true]}", KEYS(topology_keys)},
    {"field", "a field", "A global array; each rank has a part of it, with a halo around.",
     "{type: f32, size: [nx, ny], halo: [0, 1]}", KEYS(field_keys)},
    {"buffer", "a buffer",
     "An array of each rank's own. With `file` or `values`, and written by nobody, it is constant.",
     "{type: i32, count: 2 * n}", KEYS(buffer_keys)},
    {"box", "a box", "Which points: beside a field's name, at most one of these and `part`.",
     "{u: {grow: -1, part: interior}}", KEYS(box_keys)},
    {"counted", "a counted box",
     "Points 0 .. count - 1, of which there are at most `max`: count is known at run time only.",
     "{count: n, max: room}", KEYS(counted_keys)},
    {"access", "an access",
     "What one tile touches: `tile`, `whole`, ranges [[first, end]], or one of these.",
     "{u: {star: 1}}", KEYS(access_keys)},
    {"exchange_item", "a field of an exchange", "Less than all of the halo.", "{u: {star: 1}}",
     KEYS(exchange_item_keys)},
    {"piece", "a piece", "A region of a field that a message carries.", "{u: {border: [0, 1]}}",
     KEYS(piece_keys)},
    {"peers", "peers", "A row of ranks.", "{along: x}", KEYS(peers_keys)},
    {"task", "a task", "Runs a kernel on the points of a box, tile by tile.",
     "{task: relax, box: {u: {grow: -1}}, read: {u: {star: 1}}, write: un}", KEYS(task_keys)},
    {"exchange", "an exchange", "Fills halos.", "{exchange: [u, {v: {star: 1}}]}",
     KEYS(exchange_keys)},
    {"send", "a send", "Hands over a copy and never waits.", "{send: b, to: [1]}", KEYS(send_keys)},
    {"recv", "a recv", "Waits for its message.", "{recv: b, from: [-1]}", KEYS(recv_keys)},
    {"allreduce", "an allreduce", "Combines a buffer over ranks.", "{allreduce: {d2: sum}}",
     KEYS(allreduce_keys)},
    {"reduce", "a reduce", "Combines a buffer over ranks, for one of them.",
     "{reduce: {d2: sum}, to: 0}", KEYS(reduce_keys)},
    {"swap", "a swap", "Exchanges what two names mean.", "{swap: [u, un]}", KEYS(swap_keys)},
    {"set", "a set", "Gives a buffer of one element a value.", "{set: x, value: 2 * y}",
     KEYS(set_keys)},
    {"print", "a print", "A row of the run's table.", "{print: {norm: sqrt(d2)}}",
     KEYS(print_keys)},
    {"load", "a load", "Reads a file.", "{load: u, file: \"in.npy\"}", KEYS(load_keys)},
    {"save", "a save", "Writes a file.", "{save: u, file: \"u-{step}.npy\"}", KEYS(save_keys)},
    {"repeat", "a loop", "Repeats statements.", "{repeat: 3, as: k, step: [{exchange: u}]}",
     KEYS(repeat_keys)}};

static const char *const type_names[PEAL_KEY_TYPE_COUNT] = {
    "1",
    "a whole number",
    "a number of seconds",
    "a number, at least 1",
    "a text",
    "a text or a list of texts",
    "a name",
    "a name or a list of names",
    "a list of two names",
    "true or false",
    "true or false, or a list of them by axis",
    "a word",
    "a number, a boolean or a text",
    "an expression",
    "a condition",
    "a number or a list of numbers by axis",
    "an expression or a list of expressions",
    "an amount: a number, or a list by axis of numbers or [low, high]",
    "ranges [[first, end], ...] by axis",
    "a direction such as [0, -1]",
    "interior, boundary or an amount",
    "a direction, a rank, a list, all, or {along: x}",
    "a map of params",
    "a map",
    "a map of fields",
    "a map of buffers",
    "a list of statements",
    "a field, {field: ...}, or [[first, end], ...]",
    "a buffer or field, {b: [[first, end]]} or {u: {border: d}}",
    "a name, {name: footprint}, or a list of these",
    "a field, {field: {star: 1}}, or a list of these",
    "a map {buffer: sum, min or max}",
    "a map {column: expression}",
    "a map {mode: times}",
    "a map {task: times}",
    "a map {link: times}"};

const peal_context *peal_context_at(peal_context_id id)
{
    return &contexts[id];
}

const peal_key *peal_context_find(const peal_context *context, const char *name)
{
    for (int i = 0; i < context->key_count; i++)
        if (!strcmp(context->key[i].name, name))
            return &context->key[i];
    return NULL;
}

const char *peal_key_type_name(peal_key_type type)
{
    return type_names[type];
}

bool peal_key_is_reserved(const char *name)
{
    static const char *const reserved[] = {"reverse", "host", "precision"};
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return false;
}
