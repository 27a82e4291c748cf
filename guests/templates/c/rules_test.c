#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

static void expect(bool held, const char *what) {
    if (!held) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(1);
    }
}

static const char *configure(const char *json, struct rules *rules) {
    return rules_configure((const uint8_t *)json, strlen(json), rules);
}

static bool keeps(const struct rules *rules, const char *region) {
    return rules_keep(rules, (const uint8_t *)region, strlen(region));
}

int main(void) {
    struct rules rules;
    expect(configure("{\"keep\":\"eu\"}", &rules) == NULL, "a region is accepted");
    expect(keeps(&rules, "eu"), "the region is kept");
    expect(!keeps(&rules, "us") && !keeps(&rules, "eu-1"), "others are dropped");
    expect(rules_is_region((const uint8_t *)"region", 6), "the header decides");
    expect(!rules_is_region((const uint8_t *)"regions", 7), "another header does not");
    expect(configure("{\"kep\":\"eu\"}", &rules) != NULL, "another key is refused");
    expect(configure("{}", &rules) != NULL, "no key is refused");
    expect(configure("{\"keep\":\"e\",\"a\":\"b\"}", &rules) != NULL, "a second key is refused");
    return 0;
}
