/* Which engine carries messages between hosts, and why not the others. */
#include "tools/explain_network.h"

#include "runtime/network/network.h"

#include <stdio.h>

enum { TEXT_BYTES = 300 };

static bool is_taken(const peal_machine *machine, peal_transport_kind kind)
{
    return machine->network == PEAL_TRANSPORT_SELF ? kind == PEAL_TRANSPORT_TCP
                                                   : machine->network == kind;
}

/* Why an engine is not taken, or how it works where it is. */
static void describe(const peal_machine *machine, peal_transport_kind kind, char text[TEXT_BYTES])
{
    const char *reason = peal_network_refuses(kind), *name = peal_transport_name(kind);
    bool taken = is_taken(machine, kind);
    if (reason)
        snprintf(text, TEXT_BYTES, "%s%s", taken ? "asked for, but not here: " : "", reason);
    else if (kind == PEAL_TRANSPORT_TCP)
        snprintf(text, TEXT_BYTES, "%s",
                 taken ? "sockets, which are always there" : "another one was asked for");
    else if (taken && kind == PEAL_TRANSPORT_MLX5 && machine->accelerator)
        snprintf(text, TEXT_BYTES,
                 "asked for; in stream the GPU's stream rings for messages, else a thread of each "
                 "process posts them (--lower network)");
    else if (taken)
        snprintf(text, TEXT_BYTES, "asked for");
    else
        snprintf(text, TEXT_BYTES, "not asked for: --transport auto+%s%s", name,
                 kind == PEAL_TRANSPORT_UCX
                     ? ""
                     : "; `auto` never takes it, as it was tried on no adapter of silicon");
}

void network_engines_print(const peal_machine *machine)
{
    char text[TEXT_BYTES];
    printf("\nengine    taken    how, or why not (on this host)\n");
    for (peal_transport_kind kind = PEAL_TRANSPORT_TCP; kind < PEAL_TRANSPORT_COUNT; kind++) {
        describe(machine, kind, text);
        printf("%-8s  %-7s  %s\n", peal_transport_name(kind),
               is_taken(machine, kind) ? "yes" : "no", text);
    }
}

void network_engines_add_json(const peal_machine *machine, json_t *object)
{
    json_t *list = json_array();
    char text[TEXT_BYTES];
    for (peal_transport_kind kind = PEAL_TRANSPORT_TCP; kind < PEAL_TRANSPORT_COUNT; kind++) {
        describe(machine, kind, text);
        json_array_append_new(list, json_pack("{s:s,s:b,s:s}", "engine", peal_transport_name(kind),
                                              "taken", (int)is_taken(machine, kind), "text", text));
    }
    json_object_set_new(object, "engines", list);
}
