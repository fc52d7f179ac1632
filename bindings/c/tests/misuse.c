// What must not crash: NULL where something is expected, files that are missing, options that are none.

#include <stdio.h>
#include <string.h>

#include "srf.h"

// `assert` that stays when NDEBUG is set, and shows the error that was found instead.
#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "line %d: %s; srf_error(): %s\n", __LINE__, #condition, srf_error()); \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    EXPECT(strlen(srf_version()) > 0);
    EXPECT(strlen(srf_error()) == 0);

    EXPECT(srf_recognizer_open("no/such/model", NULL) == NULL);
    EXPECT(strstr(srf_error(), "no/such/model") != NULL);
    EXPECT(srf_recognizer_open(argv[1], "{\"n-best\": 3}") == NULL);
    EXPECT(strstr(srf_error(), "unknown field `n-best`") != NULL);
    EXPECT(srf_recognizer_open(argv[1], "\xff") == NULL);
    EXPECT(strstr(srf_error(), "`options` is not UTF-8") != NULL);

    EXPECT(srf_stream_open(NULL) == NULL);
    EXPECT(strcmp(srf_error(), "`recognizer` is NULL") == 0);
    EXPECT(srf_stream_accept(NULL, NULL, 0, 16000) == SRF_ERROR);
    EXPECT(srf_stream_partial(NULL) == NULL);
    EXPECT(srf_stream_take_ended(NULL) == NULL);
    EXPECT(srf_stream_finish(NULL) == NULL);
    EXPECT(srf_stream_flush(NULL) == SRF_ERROR);
    EXPECT(srf_stream_reset(NULL) == SRF_ERROR);
    EXPECT(srf_recognizer_rate_hz(NULL) == 0);
    srf_recognizer_free(NULL);
    srf_stream_free(NULL);
    srf_text_free(NULL);

    SrfRecognizer *recognizer = srf_recognizer_open(argv[1], NULL);
    EXPECT(recognizer != NULL);
    EXPECT(srf_recognizer_rate_hz(recognizer) == 16000);
    EXPECT(srf_transcribe_file(recognizer, "no-such.wav", "text") == NULL);
    EXPECT(strstr(srf_error(), "no-such.wav") != NULL);
    EXPECT(srf_transcribe_file(recognizer, NULL, "text") == NULL);
    float silence[1600] = {0};
    EXPECT(srf_transcribe_samples(recognizer, silence, 1600, 16000, "docx") == NULL);
    EXPECT(strstr(srf_error(), "unknown format `docx`") != NULL);
    EXPECT(srf_transcribe_samples(recognizer, NULL, 1600, 16000, "text") == NULL);
    char *text = srf_transcribe_samples(recognizer, silence, 1600, 16000, "text");
    EXPECT(text != NULL);
    srf_text_free(text);

    // A stream outlives its recogniser.
    SrfStream *stream = srf_stream_open(recognizer);
    srf_recognizer_free(recognizer);
    EXPECT(stream != NULL);
    EXPECT(srf_stream_accept(stream, silence, 1600, 16000) == SRF_OK);
    EXPECT(srf_stream_accept(stream, silence, 1600, 8000) == SRF_ERROR);
    EXPECT(strstr(srf_error(), "16000 Hz") != NULL);
    EXPECT(srf_stream_flush(stream) == SRF_OK);
    char *ended = srf_stream_take_ended(stream);
    EXPECT(ended != NULL && ended[0] == '[');
    srf_text_free(ended);
    EXPECT(srf_stream_reset(stream) == SRF_OK);
    srf_stream_free(stream);
    return 0;
}
