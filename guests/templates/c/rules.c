#include "rules.h"

static bool same(const uint8_t *left, const uint8_t *right, size_t length) {
    for (size_t index = 0; index < length; index++) {
        if (left[index] != right[index]) {
            return false;
        }
    }
    return true;
}

const char *rules_configure(const uint8_t *json, size_t length, struct rules *rules) {
    static const char *const WRONG = "config: give keep, the region to keep, as text without quotes and backslashes, and nothing else";
    static const uint8_t BEFORE[] = {'{', '"', 'k', 'e', 'e', 'p', '"', ':', '"'};
    if (length < sizeof BEFORE + 2 || length - sizeof BEFORE - 2 > sizeof rules->keep ||
        !same(json, BEFORE, sizeof BEFORE) || json[length - 2] != '"' || json[length - 1] != '}') {
        return WRONG;
    }
    rules->length = length - sizeof BEFORE - 2;
    for (size_t index = 0; index < rules->length; index++) {
        uint8_t byte = json[sizeof BEFORE + index];
        if (byte == '"' || byte == '\\') {
            return WRONG;
        }
        rules->keep[index] = byte;
    }
    return NULL;
}

bool rules_is_region(const uint8_t *key, size_t length) {
    static const uint8_t REGION[] = {'r', 'e', 'g', 'i', 'o', 'n'};
    return length == sizeof REGION && same(key, REGION, length);
}

bool rules_keep(const struct rules *rules, const uint8_t *region, size_t length) {
    return length == rules->length && same(region, rules->keep, length);
}
