/* The handshake of a connection between hosts: see the header. */
#include "runtime/control/handshake.h"
#include "base/hmac.h"

#include <string.h>

/* Where things lie in a challenge and in a call. */
enum {
    MAGIC = 0,
    VERSION = 8,
    CHALLENGE_NONCE = 16,
    CALL_KIND = 12,
    CALL_PROCESS = 16,
    CALL_KEY = 20,
    CALL_NONCE = 24,
    CALL_CODE = 40,
    CALL_CODE_BYTES = PEAL_CALL_BYTES - CALL_CODE
};

static const unsigned char challenge_magic[8] = "pealchal", call_magic[8] = "pealcall";

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_u32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Of the role, the challenge, and the first bytes of the call. */
static void make_code(const peal_handshake *h, const char role[8], size_t call_bytes,
                      unsigned char code[PEAL_SHA256_BYTES])
{
    peal_hmac mac;
    peal_hmac_init(&mac, h->secret, sizeof(h->secret));
    peal_hmac_add(&mac, role, 8);
    peal_hmac_add(&mac, h->challenge, sizeof(h->challenge));
    peal_hmac_add(&mac, h->call, call_bytes);
    peal_hmac_finish(&mac, code);
}

static void make_call_code(const peal_handshake *h, unsigned char code[PEAL_SHA256_BYTES])
{
    make_code(h, "calling", CALL_CODE, code);
}

static void make_answer(const peal_handshake *h, unsigned char code[PEAL_SHA256_BYTES])
{
    make_code(h, "called ", PEAL_CALL_BYTES, code);
}

static const size_t bytes_in[] = {[PEAL_NO_MESSAGE] = 0,
                                  [PEAL_CHALLENGE] = PEAL_CHALLENGE_BYTES,
                                  [PEAL_CALL] = PEAL_CALL_BYTES,
                                  [PEAL_ANSWER] = PEAL_ANSWER_BYTES};

static unsigned char *bytes_of(peal_handshake *h, peal_handshake_message message)
{
    return message == PEAL_CHALLENGE ? h->challenge
           : message == PEAL_CALL    ? h->call
           : message == PEAL_ANSWER  ? h->answer
                                     : NULL;
}

static void await(peal_handshake *h, peal_handshake_message message)
{
    h->awaited = message;
    h->have = 0;
}

static void settle(peal_handshake *h, peal_handshake_state state)
{
    h->state = state;
    if (state != PEAL_HANDSHAKE_DONE)
        h->said = PEAL_NO_MESSAGE;
    await(h, PEAL_NO_MESSAGE);
}

void peal_handshake_called(peal_handshake *h, const unsigned char secret[PEAL_SECRET_BYTES],
                           const unsigned char nonce[PEAL_NONCE_BYTES])
{
    *h = (peal_handshake){.state = PEAL_HANDSHAKE_GOES_ON};
    memcpy(h->secret, secret, PEAL_SECRET_BYTES);
    memcpy(h->challenge + MAGIC, challenge_magic, sizeof(challenge_magic));
    put_u32(h->challenge + VERSION, PEAL_WIRE_VERSION);
    memcpy(h->challenge + CHALLENGE_NONCE, nonce, PEAL_NONCE_BYTES);
    h->said = PEAL_CHALLENGE;
    await(h, PEAL_CALL);
}

void peal_handshake_calls(peal_handshake *h, const unsigned char secret[PEAL_SECRET_BYTES],
                          const unsigned char nonce[PEAL_NONCE_BYTES], peal_caller caller)
{
    *h = (peal_handshake){.caller = caller};
    memcpy(h->secret, secret, PEAL_SECRET_BYTES);
    memcpy(h->nonce, nonce, PEAL_NONCE_BYTES);
    await(h, PEAL_CHALLENGE);
}

/* Whether a message begins as it has to. */
static bool begins_with(peal_handshake *h, const unsigned char *message,
                        const unsigned char magic[8])
{
    uint32_t version = get_u32(message + VERSION);
    if (memcmp(message + MAGIC, magic, 8) != 0) {
        settle(h, PEAL_HANDSHAKE_NO_PEAL);
    } else if (version != PEAL_WIRE_VERSION) {
        h->version = version;
        settle(h, PEAL_HANDSHAKE_OTHER_VERSION);
    }
    return h->state == PEAL_HANDSHAKE_GOES_ON;
}

static void take_challenge(peal_handshake *h)
{
    unsigned char code[PEAL_SHA256_BYTES];
    if (!begins_with(h, h->challenge, challenge_magic))
        return;
    memcpy(h->call + MAGIC, call_magic, sizeof(call_magic));
    put_u32(h->call + VERSION, PEAL_WIRE_VERSION);
    put_u32(h->call + CALL_KIND, h->caller.kind);
    put_u32(h->call + CALL_PROCESS, (uint32_t)h->caller.process);
    put_u32(h->call + CALL_KEY, (uint32_t)h->caller.key);
    memcpy(h->call + CALL_NONCE, h->nonce, PEAL_NONCE_BYTES);
    make_call_code(h, code);
    memcpy(h->call + CALL_CODE, code, CALL_CODE_BYTES);
    h->said = PEAL_CALL;
    await(h, PEAL_ANSWER);
}

static void take_call(peal_handshake *h)
{
    unsigned char code[PEAL_SHA256_BYTES];
    if (!begins_with(h, h->call, call_magic))
        return;
    make_call_code(h, code);
    if (!peal_hmac_equal(h->call + CALL_CODE, code, CALL_CODE_BYTES)) {
        settle(h, PEAL_HANDSHAKE_NOT_PROVED);
        return;
    }
    h->caller =
        (peal_caller){get_u32(h->call + CALL_KIND), (int32_t)get_u32(h->call + CALL_PROCESS),
                      (int32_t)get_u32(h->call + CALL_KEY)};
    make_answer(h, h->answer);
    h->said = PEAL_ANSWER;
    settle(h, PEAL_HANDSHAKE_DONE);
}

static void take_answer(peal_handshake *h)
{
    unsigned char code[PEAL_SHA256_BYTES];
    make_answer(h, code);
    settle(h, peal_hmac_equal(h->answer, code, PEAL_ANSWER_BYTES) ? PEAL_HANDSHAKE_DONE
                                                                  : PEAL_HANDSHAKE_NOT_PROVED);
}

size_t peal_handshake_needs(const peal_handshake *h)
{
    return bytes_in[h->awaited] - h->have;
}

size_t peal_handshake_take(peal_handshake *h, const void *data, size_t bytes)
{
    size_t taken = 0;
    while (taken < bytes && h->awaited != PEAL_NO_MESSAGE) {
        size_t part = bytes - taken, missing = peal_handshake_needs(h);
        if (part > missing)
            part = missing;
        memcpy(bytes_of(h, h->awaited) + h->have, (const unsigned char *)data + taken, part);
        h->have += part;
        taken += part;
        if (part < missing)
            break;
        if (h->awaited == PEAL_CHALLENGE)
            take_challenge(h);
        else if (h->awaited == PEAL_CALL)
            take_call(h);
        else
            take_answer(h);
    }
    return taken;
}

const void *peal_handshake_say(peal_handshake *h, size_t *bytes)
{
    const void *out = bytes_of(h, h->said);
    *bytes = bytes_in[h->said];
    h->said = PEAL_NO_MESSAGE;
    return out;
}
