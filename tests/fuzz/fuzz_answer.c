/* Fuzzes the answers of `peal tune` as they lie in the cache: what is taken has a mode and counts
 * that a run can use. The fuzzer's bytes are sealed with their sum, or nothing behind that check
 * would ever be reached; bytes without it must be refused. */
#include "base/sha256.h"
#include "runtime/select/answer.h"
#include "tests/fuzz/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool load(const uint8_t *data, size_t size, peal_answer *out)
{
    char path[32], reason[200] = "";
    int fd = fuzz_file_open(data, size, path);
    bool taken = peal_answer_load(path, "0123456789abcdef", out, reason, sizeof(reason));
    close(fd);
    if (taken == (reason[0] != 0))
        abort();
    return taken;
}

/* As peal_answer_keep ends a file. */
static size_t seal(uint8_t *text, size_t size)
{
    char sum[PEAL_SHA256_TEXT];
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 hash;
    peal_sha256_init(&hash);
    peal_sha256_add(&hash, text, size);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, sum);
    return size + (size_t)snprintf((char *)text + size, 6 + PEAL_SHA256_TEXT, "sum: %s\n", sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peal_answer answer;
    uint8_t *text = malloc(size + 200);
    load(data, size, &answer);
    memcpy(text, data, size);
    for (size_t i = 0; i < size; i++) /* a seed ends with a sum of its own */
        if (size - i > 5 && !memcmp(text + i, "sum: ", 5))
            size = i;
    if (load(text, seal(text, size), &answer) &&
        (answer.mode < 0 || answer.mode >= PEAL_MODE_COUNT || answer.threads < 0 ||
         answer.rounds < 0 || !isfinite(answer.step_s) || answer.step_s < 0))
        abort();
    free(text);
    return 0;
}
