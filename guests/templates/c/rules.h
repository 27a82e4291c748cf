// What the guest decides, without anything of the component around it.
#ifndef RULES_H
#define RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rules {
    uint8_t keep[255];
    size_t length;
};

// Takes the `config` table, which comes as JSON without spaces: {"keep":"eu"}. Returns what is wrong with it, or NULL.
const char *rules_configure(const uint8_t *json, size_t length, struct rules *rules);

// Whether this is the key of the header that decides.
bool rules_is_region(const uint8_t *key, size_t length);

// Whether a message of this region is kept.
bool rules_keep(const struct rules *rules, const uint8_t *region, size_t length);

#endif
