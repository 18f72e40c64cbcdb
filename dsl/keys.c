/* The keys of the language, context by context (those of statements: statement_keys.c, of machine
 * files: machine_keys.c). */
#include "dsl/key_rows.h"

#include <stdint.h>
#include <string.h>

static const peal_key spec_keys[] = {
    {"peal", PEAL_KEY_VERSION, true, NULL, "version of the language: 1", .turn = -1},
    {"name", PEAL_KEY_TEXT, false, NULL, "name in output; default: the file's", AT(peal_spec, name),
     .turn = -1},
    {"params", PEAL_KEY_PARAMS, false, NULL,
     "named values, typed by their default (integer, real, boolean, text); `--set` overrides them",
     .turn = -1},
    {"define", PEAL_KEY_DEFINES, false, NULL,
     "named values that are computed: expressions of params and of what is defined further up",
     .turn = -1},
    {"topology", PEAL_KEY_TOPOLOGY, false, NULL,
     "how ranks lie in a grid; without: auto on every axis of the fields, none periodic",
     .turn = -1},
    {"kernels", PEAL_KEY_KERNEL_FILES, false, NULL,
     "C files with the tasks' kernels, in the spec's folder", .turn = -1},
    {"fields", PEAL_KEY_FIELDS, false, NULL,
     "global arrays that are cut into a part for each rank"},
    {"buffers", PEAL_KEY_BUFFERS, false, NULL, "arrays that each rank has for itself"},
    {"setup", PEAL_KEY_STATEMENTS, false, NULL, "statements done once, before the steps"},
    {"repeat", PEAL_KEY_EXPRESSION, false, NULL, "number of steps, at most; default 1",
     AT(peal_spec, loop.repeat)},
    {"until", PEAL_KEY_CONDITION, false, NULL, "ends the steps after one for which it holds",
     AT(peal_spec, loop.until)},
    {"every", PEAL_KEY_EXPRESSION, false, NULL, "`until` is looked at after each n-th step only",
     AT(peal_spec, loop.every)},
    {"lag", PEAL_KEY_EXPRESSION, false, NULL,
     "acts on the verdict this many looks old; the first ones never stop", AT(peal_spec, loop.lag)},
    {"step", PEAL_KEY_STATEMENTS, false, NULL, "statements of one step"},
    {"finish", PEAL_KEY_STATEMENTS, false, NULL,
     "statements done once, after the steps; `step` is the number of steps done"},
    {"require", PEAL_KEY_REQUIREMENTS, false, NULL,
     "modes or transports without which the run is refused", .turn = -1},
    {"fma", PEAL_KEY_BOOLEAN, false, NULL,
     "true: kernels may be contracted to fused multiply-adds, equal bits are given up",
     AT(peal_spec, fma), .turn = -1}};

static const peal_key param_keys[] = {{"value", PEAL_KEY_LITERAL, true, NULL,
                                       "the default, which also gives the type",
                                       AT(peal_param_desc, value), .turn = 1},
                                      {"min", PEAL_KEY_LITERAL, false, NULL,
                                       "least value that is accepted", AT(peal_param_desc, min)},
                                      {"max", PEAL_KEY_LITERAL, false, NULL,
                                       "greatest value that is accepted",
                                       AT(peal_param_desc, max)}};

static const peal_key topology_keys[] = {
    {"dims", PEAL_KEY_AXES, false, "auto",
     "ranks along x, y, z; `auto`: the factors by which the busiest rank receives the fewest halo "
     "points",
     AT(peal_topology_desc, dims)},
    {"periodic", PEAL_KEY_BOOLEANS, false, NULL,
     "whether the last rank's neighbour is the first one; one value: for all axes",
     AT(peal_topology_desc, periodic)},
    {"cuts", PEAL_KEY_CUTS, false, "auto",
     "where the axis is cut, from 0 to the fields' size: [0, 100, 512] are two parts; `auto`: "
     "equal parts, the first ones larger by a point (or `align`) if need be",
     AT(peal_topology_desc, cuts)}};

static const char for_doc[] =
    "a family: an array for each value of this counter, named u(0), u(1), ...; its other keys may "
    "name the counter";
static const char in_doc[] = "the counter's values: [first, end], end excluded";

static const peal_key field_keys[] = {
    {"for", PEAL_KEY_NAME, false, NULL, for_doc, AT(peal_field_desc, for_)},
    {"in", PEAL_KEY_LIST, false, NULL, in_doc, AT(peal_field_desc, in)},
    {"like", PEAL_KEY_NAME, false, NULL,
     "copies another field's keys, or a member's, as u(2); those beside it replace",
     AT(peal_field_desc, like)},
    {"type", PEAL_KEY_WORD, false, "f64 f32 i32 i64 u8", "type of an element; default f64",
     AT(peal_field_desc, type)},
    {"size", PEAL_KEY_AXES, false, NULL,
     "global extent by axis, x (contiguous) first, 1 to 4 axes; needed unless `like` gives it",
     AT(peal_field_desc, size)},
    {"halo", PEAL_KEY_AMOUNT, false, NULL, "what a rank stores beyond its part; default 0",
     AT(peal_field_desc, halo)},
    {"align", PEAL_KEY_AXES, false, NULL, "parts are cut at multiples of this only",
     AT(peal_field_desc, align)},
    {"stagger", PEAL_KEY_AXES, false, NULL,
     "points more along an axis, at the last rank (periodic: none)", AT(peal_field_desc, stagger)},
    {"coarsen", PEAL_KEY_AXES, false, NULL,
     "every n-th point: this field lives where n times its coordinate lives",
     AT(peal_field_desc, coarsen)},
    {"components", PEAL_KEY_EXPRESSION, false, NULL,
     "values at each point, 1 to 65535, in planes: kernels say PEAL_READ_C and PEAL_C(f, c, x, y); "
     "no axis, never cut; known before the run",
     AT(peal_field_desc, components)},
    {"replicated", PEAL_KEY_CONDITION, false, NULL,
     "true: it is not cut, each rank has all of it and computes all of it, equal on all ranks "
     "(else "
     "E082); known before the run",
     AT(peal_field_desc, replicated)}};

static const peal_key buffer_keys[] = {
    {"for", PEAL_KEY_NAME, false, NULL, for_doc, AT(peal_buffer_desc, for_)},
    {"in", PEAL_KEY_LIST, false, NULL, in_doc, AT(peal_buffer_desc, in)},
    {"type", PEAL_KEY_WORD, false, "f64 f32 i32 i64 u8", "type of an element; default f64",
     AT(peal_buffer_desc, type)},
    {"count", PEAL_KEY_EXPRESSION, false, NULL, "elements; default 1; may differ by rank",
     AT(peal_buffer_desc, count)},
    {"box", PEAL_KEY_POINTS, false, NULL, "shaped and addressed as this box",
     AT(peal_buffer_desc, box)},
    {"file", PEAL_KEY_TEXT, false, NULL,
     "a 1-D .npy file that gives size and contents: \"peers-{rank}.npy\"",
     AT(peal_buffer_desc, file)},
    {"values", PEAL_KEY_LIST, false, NULL, "contents", AT(peal_buffer_desc, values)},
    {"keep", PEAL_KEY_BOOLEAN, false, NULL, "true: the contents are defined after a run",
     AT(peal_buffer_desc, keep)}};

static const peal_key box_keys[] = {
    {"grow", PEAL_KEY_AMOUNT, false, NULL,
     "the field grown into its ghost points, or shrunk (negative)", AT(peal_points_desc, grow)},
    {"rim", PEAL_KEY_AMOUNT, false, NULL, "the points within this of the field's ends: walls",
     AT(peal_points_desc, rim)},
    {"box", PEAL_KEY_RANGES, false, NULL,
     "these coordinates, ends excluded, ghost points too; further axes whole",
     AT(peal_points_desc, box)},
    {"border", PEAL_KEY_DIRECTION, false, NULL,
     "what the neighbour in this direction has in its halo of mine", AT(peal_points_desc, border),
     .turn = -1},
    {"halo", PEAL_KEY_DIRECTION, false, NULL,
     "my halo points that the neighbour in this direction owns", AT(peal_points_desc, halo),
     .turn = -1},
    {"ghost", PEAL_KEY_DIRECTION, false, NULL,
     "of the points that I own, those beyond this end of the domain; along axes with 0 all, ghost "
     "points too; none where a neighbour is",
     AT(peal_points_desc, ghost), .turn = -1},
    {"part", PEAL_KEY_PART, false, NULL,
     "`interior`: of those, the ones at least the halo's width from every neighbouring rank; "
     "`boundary`: the rest; an amount: also my halo points within it",
     AT(peal_points_desc, part)}};

static const peal_key counted_keys[] = {
    {"count", PEAL_KEY_EXPRESSION, true, NULL,
     "how many points, known at run time; below 0 or above `max` the run ends with an error",
     AT(peal_points_desc, count)},
    {"max", PEAL_KEY_EXPRESSION, true, NULL, "at most that many", AT(peal_points_desc, max)}};

static const peal_key access_keys[] = {
    {"grow", PEAL_KEY_AMOUNT, false, NULL, "the tile grown, corners included",
     AT(peal_access_desc, grow)},
    {"star", PEAL_KEY_AMOUNT, false, NULL, "the tile grown along one axis at a time",
     AT(peal_access_desc, star)},
    {"per_tile", PEAL_KEY_EXPRESSION, false, NULL,
     "elements k*n .. k*n + n-1 in tile k; the kernel sees them as b[0] .. b[n-1]",
     AT(peal_access_desc, per_tile)},
    {"box", PEAL_KEY_RANGES, false, NULL, "these ranges, beside `stale`",
     AT(peal_access_desc, box)},
    {"whole", PEAL_KEY_BOOLEAN, false, NULL,
     "true: all of it that this rank stores, beside `stale`", AT(peal_access_desc, whole)},
    {"inside", PEAL_KEY_BOOLEAN, false, NULL,
     "true: next to the task's ghost box, as many points of the domain; beside `stale`",
     AT(peal_access_desc, inside)},
    {"stale", PEAL_KEY_CONSENT, false, "ok",
     "`ok`: halo points may be read although their owners have changed them since (else E148)",
     AT(peal_access_desc, stale_ok)}};

static const peal_key exchange_item_keys[] = {{"grow", PEAL_KEY_AMOUNT, false, NULL,
                                               "only that much of the halo, corners included",
                                               AT(peal_access_desc, grow)},
                                              {"star", PEAL_KEY_AMOUNT, false, NULL,
                                               "only that much of the halo, without corners",
                                               AT(peal_access_desc, star)}};

static const peal_key piece_keys[] = {
    {"border", PEAL_KEY_DIRECTION, false, NULL,
     "what the neighbour in this direction has in its halo of mine", AT(peal_points_desc, border)},
    {"halo", PEAL_KEY_DIRECTION, false, NULL,
     "my halo points that the neighbour in this direction owns", AT(peal_points_desc, halo)}};

static const peal_key peers_keys[] = {{"along", PEAL_KEY_WORD, false, "x y z",
                                       "all ranks of my row along this axis, me included",
                                       AT(peal_message_desc, along)},
                                      {"ranks", PEAL_KEY_LIST, false, NULL,
                                       "these ranks: expressions, or the name of a constant buffer",
                                       AT(peal_message_desc, ranks)}};

/* From PEAL_CONTEXT_SPEC to the first statement. */
static const peal_context contexts[] = {
    {"spec", "a spec", "The keys of a spec. A list of one item needs no brackets.",
     "{peal: 1, fields: {u: {size: 8}}}", KEYS(spec_keys), sizeof(peal_spec)},
    {"param", "a param", "A param with a range, instead of a value alone.",
     "{value: 8, min: 1, max: 64}", KEYS(param_keys), NAMED(peal_param_desc)},
    {"topology", "the topology", "rank = rx + Rx * (ry + Ry * rz).",
     "{dims: [2, auto], periodic: [false, true]}", KEYS(topology_keys), sizeof(peal_topology_desc)},
    {"field", "a field", "A global array; each rank has a part of it, with a halo around.",
     "{type: f32, size: [nx, ny], halo: [0, 1]}", KEYS(field_keys), NAMED(peal_field_desc)},
    {"buffer", "a buffer",
     "An array of each rank's own. With `file` or `values`, and written by nobody, it is constant.",
     "{type: i32, count: 2 * n}", KEYS(buffer_keys), NAMED(peal_buffer_desc)},
    {"box", "a box", "Which points: beside a field's name, at most one of these and `part`.",
     "{u: {grow: -1, part: interior}}", KEYS(box_keys), NAMED(peal_points_desc)},
    {"counted", "a counted box",
     "Points 0 .. count - 1, of which there are at most `max`: count is known at run time only.",
     "{count: n, max: room}", KEYS(counted_keys), sizeof(peal_points_desc)},
    {"access", "an access",
     "What one tile touches: `tile`, `whole`, `inside`, ranges [[first, end]], or one of these.",
     "{u: {star: 1}}", KEYS(access_keys), NAMED(peal_access_desc)},
    {"exchange_item", "a field of an exchange", "Less than all of the halo.", "{u: {star: 1}}",
     KEYS(exchange_item_keys), sizeof(peal_access_desc)},
    {"piece", "a piece", "A region of a field that a message carries.", "{u: {border: [0, 1]}}",
     KEYS(piece_keys), sizeof(peal_points_desc)},
    {"peers", "peers",
     "Several ranks: a row of them, or a list. A plain list `[0, 1]` is a direction.",
     "{ranks: [0, 1]}", KEYS(peers_keys), sizeof(peal_message_desc)}};

#define TEXT sizeof(const char *)

/* By type. */
static const peal_key_kind kinds[PEAL_KEY_TYPE_COUNT] = {
    [PEAL_KEY_VERSION] = {"1", "{'const': 1}"},
    [PEAL_KEY_COUNT] = {"a whole number", "{'type': 'integer', 'minimum': 1}", sizeof(int)},
    [PEAL_KEY_BYTES] = {"a whole number", "{'type': 'integer', 'minimum': 1}", sizeof(int64_t)},
    [PEAL_KEY_SECONDS] = {"a number of seconds", "{'type': 'number', 'minimum': 0}",
                          sizeof(double)},
    [PEAL_KEY_RATE] = {"a number, at least 1", "{'type': 'number', 'minimum': 1}", sizeof(double)},
    [PEAL_KEY_TEXT] = {"a text", "text", TEXT},
    [PEAL_KEY_KERNEL_FILES] = {"a text or a list of texts", "texts"},
    [PEAL_KEY_REQUIREMENTS] = {"a text or a list of texts", "texts"},
    [PEAL_KEY_NAME] = {"a name", "identifier", TEXT},
    [PEAL_KEY_NAMES] = {"a name or a list of names", "names", TEXT},
    [PEAL_KEY_PAIR] = {"a list of two names", "pair", TEXT},
    [PEAL_KEY_BOOLEAN] = {"true or false", "{'type': 'boolean'}", sizeof(bool)},
    [PEAL_KEY_BOOLEANS] = {"true or false, or a list of them by axis", "booleans", TEXT},
    [PEAL_KEY_WORD] = {"a word", NULL, TEXT},
    [PEAL_KEY_CONSENT] = {"a word", NULL, sizeof(bool)},
    [PEAL_KEY_SHARE] = {"a word", NULL, sizeof(peal_link_share)},
    [PEAL_KEY_LITERAL] = {"a number, a boolean or a text", "scalar", TEXT},
    [PEAL_KEY_EXPRESSION] = {"an expression", "expression", TEXT},
    [PEAL_KEY_CONDITION] = {"a condition", "condition", TEXT},
    [PEAL_KEY_AXES] = {"a number or a list of numbers by axis", "axes", TEXT},
    [PEAL_KEY_LIST] = {"an expression or a list of expressions", "list", TEXT},
    [PEAL_KEY_ARGUMENTS] = {"an expression or a list of expressions", "list", TEXT},
    [PEAL_KEY_AMOUNT] = {"an amount: a number, or a list by axis of numbers or [low, high]",
                         "amount", TEXT},
    [PEAL_KEY_RANGES] = {"ranges [[first, end], ...] by axis", "ranges", TEXT},
    [PEAL_KEY_CUTS] = {"a list [0, ..., size] or `auto` by axis", "cuts", TEXT},
    [PEAL_KEY_DIRECTION] = {"a direction such as [0, -1]", "direction", TEXT},
    [PEAL_KEY_PART] = {"interior, boundary or an amount", "part", TEXT},
    [PEAL_KEY_PEERS] = {"a direction, a rank, {ranks: [0, 2]}, a list, all, or {along: x}", "peer",
                        TEXT},
    [PEAL_KEY_PARAMS] = {"a map of params", "params"},
    [PEAL_KEY_DEFINES] = {"a map of expressions", "defines"},
    [PEAL_KEY_TOPOLOGY] = {"a map", "topology"},
    [PEAL_KEY_FIELDS] = {"a map of fields", "fields"},
    [PEAL_KEY_BUFFERS] = {"a map of buffers", "buffers"},
    [PEAL_KEY_STATEMENTS] = {"a list of statements", "body"},
    [PEAL_KEY_POINTS] = {"a field, {field: ...}, or [[first, end], ...]", "points",
                         sizeof(peal_points_desc)},
    [PEAL_KEY_MESSAGE] = {"a buffer or field, {b: [[first, end]]} or {u: {border: d}}", "message",
                          sizeof(peal_points_desc)},
    [PEAL_KEY_ACCESSES] = {"a name, {name: footprint}, or a list of these", "accesses",
                           sizeof(peal_access_desc)},
    [PEAL_KEY_EXCHANGE] = {"a field, {field: {star: 1}}, or a list of these", "exchange_fields",
                           sizeof(peal_access_desc)},
    [PEAL_KEY_REDUCTIONS] = {"a map {buffer: sum, min or max}", "reductions",
                             sizeof(peal_reduce_desc)},
    [PEAL_KEY_PRINT] = {"a map {column: expression}", "columns", sizeof(peal_print_desc)},
    [PEAL_KEY_MODES] = {"a map {mode: times}", "modes"},
    [PEAL_KEY_KERNELS] = {"a map {task: times}", "kernels"},
    [PEAL_KEY_LINKS] = {"a map {link: times}", "links"}};

const peal_context *peal_context_at(peal_context_id id)
{
    return id < PEAL_CONTEXT_SPEC   ? &peal_machine_contexts[id]
           : id < PEAL_CONTEXT_TASK ? &contexts[id - PEAL_CONTEXT_SPEC]
                                    : &peal_statement_contexts[id - PEAL_CONTEXT_TASK];
}

const peal_key *peal_context_find(const peal_context *context, const char *name)
{
    for (int i = 0; i < context->key_count; i++)
        if (!strcmp(context->key[i].name, name))
            return &context->key[i];
    return NULL;
}

const peal_key_kind *peal_key_kind_of(const peal_key *key)
{
    return &kinds[key->type];
}

void *peal_key_member(const peal_key *key, const void *desc)
{
    return (char *)(uintptr_t)desc + key->at.offset;
}

int peal_key_room(const peal_key *key)
{
    return (int)(key->at.bytes / kinds[key->type].bytes);
}

peal_source *peal_desc_source(const void *desc)
{
    return (peal_source *)(void *)((char *)(uintptr_t)desc + offsetof(peal_param_desc, source));
}

bool peal_key_is_reserved(const char *name)
{
    static const char *const reserved[] = {"reverse", "host", "precision"};
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return false;
}
