// Tests of mask.c and config.c on the machine that builds: see README.md.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mask.h"

static void expect(bool holds, const char *what, const char *found) {
    if (!holds) {
        fprintf(stderr, "failed: %s: %s\n", what, found);
        exit(1);
    }
}

static void masked(const char *payload, const char *expected, unsigned keep_last) {
    struct mask_settings settings = {.keep_last = keep_last, .mask = '*'};
    char bytes[256];
    size_t length = strlen(payload);
    memcpy(bytes, payload, length + 1);
    size_t found = mask_cards((uint8_t *)bytes, length, &settings);
    expect(strcmp(bytes, expected) == 0, payload, bytes);
    expect((found > 0) == (strcmp(payload, expected) != 0), "the count of", payload);
}

static void cards(void) {
    masked("{\"card\":\"4111111111111111\"}", "{\"card\":\"************1111\"}", 4);
    masked("4111 1111 1111 1111", "**** **** **** 1111", 4);
    masked("4111-1111-1111-1111;5500005555555559", "****-****-****-****;****************", 0);
    masked("3782 822463 10005", "**** ****** *0005", 4);
    // Of a date, a time and a card only the card is one.
    masked("2024-01-01 4111111111111111 12", "2024-01-01 ************1111 12", 4);
    // A digit is wrong; there are too few or too many; a letter or a second space is between them.
    masked("4111111111111112", "4111111111111112", 4);
    masked("411111111111", "411111111111", 4);
    masked("41111111111111110000", "41111111111111110000", 4);
    masked("4111 1111  1111 1111", "4111 1111  1111 1111", 4);
    masked("4111x1111x1111x1111", "4111x1111x1111x1111", 4);
    masked("", "", 4);
}

static void refused(const char *json, const char *expected) {
    struct mask_settings settings = {.keep_last = 4, .mask = '*'};
    const char *problem = mask_configure((const uint8_t *)json, strlen(json), &settings);
    expect(problem != NULL && strcmp(problem, expected) == 0, json, problem == NULL ? "accepted" : problem);
}

static void accepted(const char *json, unsigned keep_last, uint8_t mask) {
    struct mask_settings settings = {.keep_last = 4, .mask = '*'};
    const char *problem = mask_configure((const uint8_t *)json, strlen(json), &settings);
    expect(problem == NULL, json, problem == NULL ? "" : problem);
    expect(settings.keep_last == keep_last && settings.mask == mask, json, "other settings");
}

static void configurations(void) {
    accepted("{}", 4, '*');
    accepted("{\"keep_last\":0}", 0, '*');
    accepted(" { \"mask\" : \"0\" , \"keep_last\" : 6 } ", 6, '0');
    accepted("{\"mask\":\"\\\\\"}", 4, '\\');
    refused("{\"keep_last\":7}", "config.keep_last: is not a whole number from 0 to 6");
    refused("{\"keep_last\":40}", "config.keep_last: is not a whole number from 0 to 6");
    refused("{\"keep_last\":\"4\"}", "config.keep_last: is not a whole number from 0 to 6");
    refused("{\"mask\":\"ab\"}", "config.mask: is not one printable ASCII character");
    refused("{\"mask\":\"\xc3\xa9\"}", "config.mask: is not one printable ASCII character");
    refused("{\"keep\":4}", "config: unknown key keep; there are keep_last and mask");
}

int main(void) {
    cards();
    configurations();
    return 0;
}
