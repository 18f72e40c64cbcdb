/* Fuzzes both sides of the handshake between hosts, whose first byte of input says which, and in
 * pieces of which size: nobody gets in who does not say, byte by byte, what the other process of
 * the job says. (Nonces are the same each time: a real one would let no recording in.) */
#include "runtime/control/handshake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct transcript {
    unsigned char challenge[PEAL_CHALLENGE_BYTES], call[PEAL_CALL_BYTES], answer[PEAL_ANSWER_BYTES];
} transcript;

static const unsigned char secret[PEAL_SECRET_BYTES] = "0123456789abcde";
static const unsigned char nonce[2][PEAL_NONCE_BYTES] = {"fedcba987654321", "nonce of caller"};

static void begin(peal_handshake *h, bool is_called)
{
    if (is_called)
        peal_handshake_called(h, secret, nonce[0]);
    else
        peal_handshake_calls(h, secret, nonce[1], (peal_caller){PEAL_HELLO_STREAM, 1, 7});
}

static void hear(peal_handshake *from, peal_handshake *to, unsigned char *kept)
{
    size_t bytes;
    const void *said = peal_handshake_say(from, &bytes);
    memcpy(kept, said, bytes);
    if (peal_handshake_take(to, kept, bytes) != bytes)
        abort();
}

/* What the two sides say to each other. */
static transcript of_the_job(void)
{
    peal_handshake called, calls;
    transcript t = {{0}};
    begin(&called, true);
    begin(&calls, false);
    hear(&called, &calls, t.challenge);
    hear(&calls, &called, t.call);
    hear(&called, &calls, t.answer);
    if (called.state != PEAL_HANDSHAKE_DONE || calls.state != PEAL_HANDSHAKE_DONE)
        abort();
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peal_handshake h;
    size_t bytes;
    if (size < 1)
        return 0;
    transcript t = of_the_job();
    bool is_called = data[0] & 1;
    size_t piece = 1 + data[0] / 2, at = 1;
    begin(&h, is_called);
    peal_handshake_say(&h, &bytes);
    while (at < size) {
        size_t part = size - at < piece ? size - at : piece;
        size_t taken = peal_handshake_take(&h, data + at, part);
        if (taken > part || (taken < part && h.state == PEAL_HANDSHAKE_GOES_ON))
            abort();
        at += taken;
        const void *said = peal_handshake_say(&h, &bytes);
        if ((said != NULL) != (bytes > 0) || (said && h.state >= PEAL_HANDSHAKE_NO_PEAL))
            abort();
        if (h.state != PEAL_HANDSHAKE_GOES_ON)
            break;
    }
    unsigned char wanted[PEAL_CHALLENGE_BYTES + PEAL_ANSWER_BYTES];
    size_t wants = is_called ? sizeof(t.call) : sizeof(wanted);
    memcpy(wanted, t.challenge, sizeof(t.challenge));
    memcpy(wanted + sizeof(t.challenge), t.answer, sizeof(t.answer));
    bool is_right = size - 1 >= wants && !memcmp(data + 1, is_called ? t.call : wanted, wants);
    if ((h.state == PEAL_HANDSHAKE_DONE) != is_right)
        abort();
    return 0;
}
