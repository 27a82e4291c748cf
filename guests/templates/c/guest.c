// The component: world `transform` of the contract in wit around the functions of rules.h.

#include "rules.h"
#include "transform.h"

static struct rules rules;

// A reason is shown to the operator, and the guest is not used.
bool exports_sluice_guest_message_handler_start(exports_sluice_guest_message_handler_source_t *source,
                                                transform_string_t *config,
                                                exports_sluice_guest_message_handler_inputs_t *inputs,
                                                transform_string_t *error) {
    const char *problem = rules_configure(config->ptr, config->len, &rules);
    exports_sluice_guest_message_handler_source_free(source);
    transform_string_free(config);
    if (problem != NULL) {
        transform_string_dup(error, problem);
        return false;
    }
    *inputs = SLUICE_GUEST_TYPES_INPUTS_HEADERS;
    return true;
}

static bool kept(const exports_sluice_guest_message_handler_message_t *message) {
    for (size_t index = 0; index < message->headers.len; index++) {
        const sluice_guest_types_field_t *key = &message->headers.ptr[index].key;
        const sluice_guest_types_field_t *value = &message->headers.ptr[index].value;
        if (key->tag == SLUICE_GUEST_TYPES_FIELD_TEXT && rules_is_region(key->val.text.ptr, key->val.text.len)) {
            return value->tag == SLUICE_GUEST_TYPES_FIELD_TEXT &&
                   rules_keep(&rules, value->val.text.ptr, value->val.text.len);
        }
    }
    return false;
}

void exports_sluice_guest_message_handler_handle(exports_sluice_guest_message_handler_message_t *message,
                                                 exports_sluice_guest_message_handler_verdict_t *verdict) {
    verdict->tag = kept(message) ? SLUICE_GUEST_TYPES_VERDICT_FORWARD : SLUICE_GUEST_TYPES_VERDICT_DROP;
    exports_sluice_guest_message_handler_message_free(message);
}
