// The component: world `transform` of ../../wit around the functions of mask.h.

#include "mask.h"
#include "transform.h"

static struct mask_settings settings;

bool exports_sluice_guest_message_handler_start(exports_sluice_guest_message_handler_source_t *source,
                                                transform_string_t *config,
                                                exports_sluice_guest_message_handler_inputs_t *inputs,
                                                transform_string_t *error) {
    settings = (struct mask_settings){.keep_last = 4, .mask = '*'};
    const char *problem = mask_configure(config->ptr, config->len, &settings);
    exports_sluice_guest_message_handler_source_free(source);
    transform_string_free(config);
    if (problem != NULL) {
        transform_string_dup(error, problem);
        return false;
    }
    *inputs = SLUICE_GUEST_TYPES_INPUTS_PAYLOADS;
    return true;
}

void exports_sluice_guest_message_handler_handle(exports_sluice_guest_message_handler_message_t *message,
                                                 exports_sluice_guest_message_handler_verdict_t *verdict) {
    if (mask_cards(message->payload.ptr, message->payload.len, &settings) == 0) {
        verdict->tag = SLUICE_GUEST_TYPES_VERDICT_FORWARD;
    } else {
        verdict->tag = SLUICE_GUEST_TYPES_VERDICT_REWRITE;
        verdict->val.rewrite = (sluice_guest_types_rewrite_t){
            .payload = {.is_some = true, .val = message->payload},
        };
        // It is the verdict's now, and freed with it.
        message->payload = (transform_list_u8_t){0};
    }
    exports_sluice_guest_message_handler_message_free(message);
}
