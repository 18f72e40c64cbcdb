/* Drives a fuzz target without libFuzzer: its seeds as they are, then mutations of them from a
 * fixed random seed.
 *
 *     fuzz_yaml ROUNDS SEED-FILE ... */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t read_file(const char *path, uint8_t *data)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    size_t count = fread(data, 1, MOST_BYTES / 2, file);
    fclose(file);
    return count;
}

/* Replaces, removes, doubles or inserts a few bytes. */
static size_t mutate(uint8_t *data, size_t count)
{
    static const char words[] = "[]{}:,-#'\"\n &*!()%/.0123456789abnstu_\t\\";
    for (uint64_t changes = 1 + next_random() % 4; changes > 0; changes--) {
        size_t at = count > 0 ? next_random() % count : 0, rest = count - at;
        size_t length = next_random() % 16;
        uint8_t byte = (uint8_t)words[next_random() % (sizeof(words) - 1)];
        length = length > rest ? rest : length;
        switch (next_random() % 4) {
        case 0:
            if (count > 0)
                data[at] = next_random() % 8 ? byte : (uint8_t)next_random();
            break;
        case 1:
            memmove(data + at, data + at + length, rest - length);
            count -= length;
            break;
        case 2:
            if (count + length < MOST_BYTES) {
                memmove(data + at + length, data + at, rest);
                count += length;
            }
            break;
        default:
            if (count + 1 < MOST_BYTES) {
                memmove(data + at + 1, data + at, rest);
                data[at] = byte;
                count++;
            }
        }
    }
    return count;
}

int main(int argument_count, char **argument)
{
    static uint8_t data[MOST_BYTES];
    if (argument_count < 3) {
        fprintf(stderr, "usage: %s ROUNDS SEED-FILE ...\n", argument[0]);
        return 2;
    }
    long rounds = strtol(argument[1], NULL, 10);
    for (int i = 2; i < argument_count; i++)
        LLVMFuzzerTestOneInput(data, read_file(argument[i], data));
    for (long round = 0; round < rounds; round++) {
        size_t count =
            read_file(argument[2 + next_random() % (uint64_t)(argument_count - 2)], data);
        LLVMFuzzerTestOneInput(data, mutate(data, count));
    }
    printf("%d seeds, %ld mutations\n", argument_count - 2, rounds);
    return 0;
}
