/* Names and sizes of the types that everything shares. */
#include <peal/plugin/schedule.h>
#include <peal/plugin/times.h>
#include <peal/status.h>
#include <peal/types.h>

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *c_name;
    size_t bytes;
} types[PEAL_TYPE_COUNT] = {{"f64", "double", 8},
                            {"f32", "float", 4},
                            {"i32", "int32_t", 4},
                            {"i64", "int64_t", 8},
                            {"u8", "uint8_t", 1}};

size_t peal_type_bytes(peal_type type)
{
    return (unsigned)type < PEAL_TYPE_COUNT ? types[type].bytes : 0;
}

const char *peal_type_name(peal_type type)
{
    return (unsigned)type < PEAL_TYPE_COUNT ? types[type].name : "";
}

const char *peal_type_c_name(peal_type type)
{
    return (unsigned)type < PEAL_TYPE_COUNT ? types[type].c_name : "";
}

const char *peal_mode_name(peal_mode mode)
{
    static const char *const names[PEAL_MODE_COUNT] = {"serial", "sync", "stream", "graph",
                                                       "fused"};
    return (unsigned)mode < PEAL_MODE_COUNT ? names[mode] : "";
}

const char *peal_transport_name(peal_transport_kind kind)
{
    static const char *const names[PEAL_TRANSPORT_COUNT] = {"self", "shm",   "p2p", "tcp",
                                                            "ucx",  "verbs", "mlx5"};
    return names[kind];
}

const char *peal_path_name(peal_path path)
{
    static const char *const names[PEAL_PATH_COUNT] = {"none", "p2p:vmm", "p2p:ipc", "shm"};
    return names[path];
}

const char *peal_link_name(peal_link_class link)
{
    static const char *const names[] = {"device", "p2p", "host", "network"};
    return names[link];
}

/* A word of them, or all of them. */
static bool is_word(const char *words, size_t length, const char *word)
{
    return strlen(word) == length && !strncmp(words, word, length);
}

static peal_transport_kind network_named(const char *word)
{
    for (int kind = PEAL_TRANSPORT_TCP; kind < PEAL_TRANSPORT_COUNT; kind++)
        if (!strcmp(word, peal_transport_name((peal_transport_kind)kind)))
            return (peal_transport_kind)kind;
    return PEAL_TRANSPORT_SELF;
}

/* Of what comes before a "+". */
static size_t path_length(const char *words)
{
    return strcspn(words, "+");
}

bool peal_transport_sets_apart(const char *words)
{
    return words && network_named(words) != PEAL_TRANSPORT_SELF;
}

peal_transport_kind peal_transport_between_hosts(const char *words)
{
    const char *plus = words ? strchr(words, '+') : NULL;
    peal_transport_kind kind = network_named(plus ? plus + 1 : words ? words : "");
    return kind == PEAL_TRANSPORT_SELF ? PEAL_TRANSPORT_TCP : kind;
}

bool peal_transport_is_known(const char *words)
{
    if (!words || peal_transport_sets_apart(words))
        return true;
    size_t length = path_length(words);
    if (words[length] && network_named(words + length + 1) == PEAL_TRANSPORT_SELF)
        return false;
    if (is_word(words, length, "auto") || is_word(words, length, "p2p"))
        return true;
    for (int path = PEAL_PATH_VMM; path < PEAL_PATH_COUNT; path++)
        if (is_word(words, length, peal_path_name((peal_path)path)))
            return true;
    return false;
}

bool peal_transport_allows(const char *words, peal_path path)
{
    const char *own = peal_path_name(path);
    size_t length = words ? path_length(words) : 0;
    return !words || is_word(words, length, "auto") ||
           (!strncmp(words, own, length) && (own[length] == ':' || own[length] == 0));
}

int64_t peal_lowering_tile(const char *words)
{
    static const char key[] = "tile=";
    for (const char *at = words; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, key, sizeof(key) - 1) && at[sizeof(key) - 1] != '-')
            return strtoll(at + sizeof(key) - 1, NULL, 10);
    return 0;
}

const char *peal_channel_transport(const peal_machine *machine, const peal_channel *channel)
{
    return channel->transport == PEAL_TRANSPORT_P2P && machine->path != PEAL_PATH_NONE
               ? peal_path_name(machine->path)
               : peal_transport_name(channel->transport);
}

const char *peal_status_name(peal_status status)
{
    switch (status) {
    case PEAL_STATUS_OK:
        return "ok";
    case PEAL_STATUS_WRONG_RESULT:
        return "wrong result";
    case PEAL_STATUS_USAGE:
        return "wrong usage";
    case PEAL_STATUS_SPEC:
        return "error in the spec";
    case PEAL_STATUS_ENVIRONMENT:
        return "unsuitable environment";
    case PEAL_STATUS_PEER_LOST:
        return "peer lost";
    case PEAL_STATUS_DEADLINE:
        return "deadline passed";
    case PEAL_STATUS_DEVICE:
        return "device error";
    case PEAL_STATUS_INTERNAL:
        return "internal error";
    case PEAL_STATUS_INTERRUPT:
        return "interrupted";
    case PEAL_STATUS_CLOSED_OUTPUT:
        return "output closed";
    case PEAL_STATUS_TERMINATED:
        return "terminated";
    }
    return "unknown status";
}
