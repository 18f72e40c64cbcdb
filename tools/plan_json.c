/* A schedule as JSON: the same nouns as in peal/plugin/schedule.h, names instead of indexes where a
 * reader wants names. */
#include "tools/plan_json.h"

#include "tools/memory.h"
#include "tools/output.h"

#include "scheduler/scheduler.h"

static const char *const op_names[] = {"launch", "copy", "write", "wait", "fence",
                                       "swap",   "loop", "if",    "end"};
static const char *const copy_names[] = {"send", "unpack", "local"};
static const char *const scope_names[] = {"block", "gpu", "sys"};
static const char *const agent_names[] = {"threads", "bulk copy", "copy engine", "host", "nic"};
static const char *const task_names[] = {"kernel", "fold", "combine", "set",
                                         "print",  "load", "save",    "decide"};

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, int64_t number)
{
    json_object_set_new(object, key, json_integer(number));
}

static json_t *numbers(const int64_t *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *array_of(const peal_schedule_array *array)
{
    json_t *object = json_object();
    set_text(object, "name", array->name);
    set_text(object, "type", peal_type_name(array->type));
    json_object_set_new(object, "part", json_box(&array->layout.part));
    json_object_set_new(object, "own", json_box(&array->layout.own));
    json_object_set_new(object, "stored", json_box(&array->layout.stored));
    json_object_set_new(object, "stride", numbers(array->layout.stride, PEAL_AXES));
    set_number(object, "bytes", array->layout.bytes);
    set_number(object, "offset", array->layout.offset);
    json_object_set_new(object, "hidden", json_boolean(array->hidden));
    json_object_set_new(object, "defined", json_boolean(array->defined));
    return object;
}

static json_t *task_of(const peal_schedule *schedule, const peal_schedule_task *task)
{
    json_t *object = json_object(), *tilings = json_array();
    set_text(object, "kind", task_names[task->kind]);
    set_text(object, "name", task->name);
    set_text(object, "kernel", task->kernel);
    set_number(object, "line", task->source.line);
    set_number(object, "tiles", task->tile_count);
    if (task->count)
        set_text(object, "count", task->count->text);
    for (int i = 0; i < task->tiling_count; i++) {
        const peal_tiling *tiling = &task->tiling[i];
        json_t *item = json_object();
        json_object_set_new(item, "box", json_box(&tiling->box));
        json_object_set_new(item, "extent", numbers(tiling->extent, PEAL_AXES));
        json_object_set_new(item, "count", numbers(tiling->count, PEAL_AXES));
        set_number(item, "first", tiling->first);
        json_array_append_new(tilings, item);
    }
    json_object_set_new(object, "tilings", tilings);
    json_t *stale = json_array();
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].stale_is_meant)
            json_array_append_new(stale, json_string(schedule->array[task->access[i].array].name));
    if (json_array_size(stale) > 0)
        json_object_set(object, "stale_is_meant", stale);
    json_decref(stale);
    return object;
}

static json_t *channel_of(const peal_schedule *schedule, const peal_channel *channel)
{
    json_t *object = json_object(), *pieces = json_array();
    set_text(object, "edge", channel->edge);
    set_text(object, "direction", channel->outgoing ? "out" : "in");
    set_number(object, "peer", channel->peer);
    set_text(object, "transport", peal_transport_name(channel->transport));
    set_number(object, "bytes", channel->message_bytes);
    set_number(object, "slots", channel->slots);
    set_number(object, "staging_bytes", channel->staging_bytes);
    json_object_set_new(object, "credit", json_boolean(channel->credit_offset >= 0));
    set_text(object, "credit_why", channel->credit_why);
    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i];
        json_t *item = json_object();
        set_text(item, "array", schedule->array[piece->array].name);
        json_object_set_new(item, "box", json_box(&piece->source));
        json_object_set_new(item, "direct", json_boolean(piece->direct));
        if (piece->counted)
            json_object_set_new(item, "counted", json_true());
        set_number(item, "bytes", piece->bytes);
        json_array_append_new(pieces, item);
    }
    json_object_set_new(object, "pieces", pieces);
    return object;
}

static json_t *ranges_of(const peal_op *op)
{
    json_t *list = json_array();
    for (int i = 0; i < op->range_count; i++) {
        json_t *item = json_object();
        set_number(item, "tiling", op->range[i].tiling);
        json_object_set_new(item, "lo", numbers(op->range[i].lo, PEAL_AXES));
        json_object_set_new(item, "hi", numbers(op->range[i].hi, PEAL_AXES));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *dependences_of(const peal_op *op)
{
    json_t *list = json_array();
    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *dependence = &op->dependence[i];
        json_t *item = json_object(), *axes = json_array();
        set_number(item, "op", dependence->op);
        set_number(item, "lag", dependence->lag);
        json_object_set_new(item, "all", json_boolean(dependence->all));
        for (int k = 0; k < PEAL_AXES && !dependence->all; k++) {
            const peal_map_axis *map = &dependence->map[k];
            json_array_append_new(axes,
                                  json_pack("{s:i,s:I,s:I,s:I,s:I,s:I,s:I}", "axis", map->b_axis,
                                            "step", (json_int_t)map->step, "low",
                                            (json_int_t)map->low, "high", (json_int_t)map->high,
                                            "divisor", (json_int_t)map->divisor, "first",
                                            (json_int_t)map->first, "last", (json_int_t)map->last));
        }
        if (!dependence->all)
            json_object_set_new(item, "map", axes);
        json_decref(dependence->all ? axes : NULL);
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *op_of(const peal_schedule *schedule, const peal_op *op)
{
    json_t *object = json_object();
    set_text(object, "op", op_names[op->kind]);
    set_text(object, "label", op->label);
    set_number(object, "lane", op->lane);
    if (op->source.line > 0)
        set_number(object, "line", op->source.line);
    if (op->kind == PEAL_OP_LAUNCH) {
        set_number(object, "task", op->task);
        json_object_set_new(object, "ranges", ranges_of(op));
    }
    if (op->kind == PEAL_OP_COPY)
        set_text(object, "copy", copy_names[op->copy]);
    if ((op->kind == PEAL_OP_COPY || op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT) &&
        op->channel >= 0)
        set_number(object, "channel", op->channel);
    if (op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT) {
        set_text(object, "word", op->credit ? "credit" : "flag");
        set_text(object, "scope", scope_names[op->scope]);
        set_text(object, "from", agent_names[op->from]);
        set_text(object, "to", agent_names[op->to]);
    }
    if (op->kind == PEAL_OP_SWAP)
        json_object_set_new(object, "swap",
                            json_pack("[s,s]", schedule->array[op->first].name,
                                      schedule->array[op->second].name));
    if (op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF || op->kind == PEAL_OP_END)
        set_number(object, op->kind == PEAL_OP_END ? "begin" : "end", op->end);
    if (op->kind == PEAL_OP_IF && op->condition)
        set_text(object, "condition", op->condition->text);
    if (op->dependence_count)
        json_object_set_new(object, "after", dependences_of(op));
    return object;
}

static json_t *put_of(const peal_put *put, const char *way, int process, bool rings)
{
    json_t *object = json_object();
    set_text(object, "direction", way);
    set_number(object, "process", process);
    set_text(object, "word", put->credit ? "credit" : "flag");
    set_number(object, "channel", put->channel);
    set_number(object, "rank", put->rank);
    set_number(object, "offset", put->word);
    set_number(object, "bytes", put->bytes);
    if (put->bytes) {
        set_number(object, "slots", put->slots);
        set_number(object, "slot_offset", put->slot);
    }
    if (rings) /* entries of a message in its ring, bytes of the stores that make it due */
        json_object_set_new(object, "ring",
                            json_pack("{s:i, s:[i, i]}", "entries", peal_put_entries(put), "stores",
                                      (int)sizeof(uint32_t), (int)sizeof(uint64_t)));
    return object;
}

/* What the rank and ranks of other hosts store into each other's memory. */
static json_t *puts_of(const peal_schedule *schedule)
{
    json_t *list = json_array();
    if (!peal_has_puts(schedule))
        return list;
    const bool rings = schedule->machine->network == PEAL_TRANSPORT_MLX5;
    peal_arena *arena = peal_arena_create();
    if (!arena)
        command_end_without_memory(sizeof(peal_put));
    COMMAND_ARENA_GUARD(arena);
    for (int p = 0; p < schedule->machine->processes; p++) {
        peal_pair pair;
        peal_arena_clear(arena);
        peal_list_puts(&schedule, 1, p, arena, &pair);
        for (int i = 0; i < pair.out_count; i++)
            json_array_append_new(list, put_of(&pair.out[i], "out", p, rings));
        for (int i = 0; i < pair.in_count; i++)
            json_array_append_new(list, put_of(&pair.in[i], "in", p, false));
    }
    peal_arena_destroy(arena);
    return list;
}

json_t *json_schedule(const peal_schedule *schedule)
{
    json_t *object = json_object();
    json_t *arrays = json_array(), *tasks = json_array(), *channels = json_array(),
           *ops = json_array();
    set_text(object, "mode", peal_mode_name(schedule->mode));
    set_number(object, "rank", schedule->rank);
    set_text(object, "hash", text_hash(schedule->hash).s);
    set_number(object, "workers", schedule->workers);
    set_number(object, "lanes", schedule->lanes);
    set_text(object, "path", peal_path_name(schedule->machine->path));
    set_number(object, "segment_bytes", schedule->segment_bytes);
    set_number(object, "used_bytes", schedule->used_bytes);
    const peal_section *const sections[] = {&schedule->setup, &schedule->step, &schedule->finish};
    static const char *const section_names[] = {"setup", "step", "finish"};
    for (int i = 0; i < 3; i++)
        json_object_set_new(object, section_names[i],
                            json_pack("[i,i]", sections[i]->first, sections[i]->end));
    for (int i = 0; i < schedule->array_count; i++)
        json_array_append_new(arrays, array_of(&schedule->array[i]));
    for (int i = 0; i < schedule->task_count; i++)
        json_array_append_new(tasks, task_of(schedule, &schedule->task[i]));
    for (int i = 0; i < schedule->channel_count; i++)
        json_array_append_new(channels, channel_of(schedule, &schedule->channel[i]));
    for (int i = 0; i < schedule->op_count; i++)
        json_array_append_new(ops, op_of(schedule, &schedule->op[i]));
    json_object_set_new(object, "arrays", arrays);
    json_object_set_new(object, "tasks", tasks);
    json_object_set_new(object, "channels", channels);
    json_object_set_new(object, "ops", ops);
    json_object_set_new(object, "puts", puts_of(schedule));
    return object;
}
