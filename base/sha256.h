/* SHA-256 (FIPS 180-4): names and checks the entries of the kernel cache; under base/hmac.h. */
#ifndef PEAL_BASE_SHA256_H
#define PEAL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { PEAL_SHA256_BYTES = 32, PEAL_SHA256_TEXT = 65 };

typedef struct peal_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} peal_sha256;

void peal_sha256_init(peal_sha256 *hash);
void peal_sha256_add(peal_sha256 *hash, const void *data, size_t bytes);
void peal_sha256_finish(peal_sha256 *hash, unsigned char digest[PEAL_SHA256_BYTES]);
/* As lower-case hexadecimal digits. */
void peal_sha256_text(const unsigned char digest[PEAL_SHA256_BYTES], char text[PEAL_SHA256_TEXT]);

#endif
