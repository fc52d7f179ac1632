// Transcribes a 16-bit WAV file twice, as a file and as a live stream in pieces, and compares the texts.
//
//   cc bindings/c/examples/transcribe.c -Ibindings/c -Ltarget/release -lsrf_c -o transcribe
//   LD_LIBRARY_PATH=target/release ./transcribe models/en-phones samples/woman-1.wav

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srf.h"

enum { PIECE = 1600, HEADER_BYTES = 44 };

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, srf_error());
    if (*srf_hint()) {
        fprintf(stderr, "hint: %s\n", srf_hint());
    }
    return EXIT_FAILURE;
}

// The text between `"text":"` and the next quote of a JSON array of one segment.
static int has_text(const char *json, const char *text) {
    const char *found = strstr(json, "\"text\":\"");
    size_t length = strlen(text);
    return found && strncmp(found + 8, text, length) == 0 && found[8 + length] == '"';
}

static char *stream_file(SrfRecognizer *recognizer, const char *path) {
    FILE *file = fopen(path, "rb");
    SrfStream *stream = srf_stream_open(recognizer);
    char *ended = NULL;
    int16_t samples[PIECE];
    size_t n;
    if (file && stream && fseek(file, HEADER_BYTES, SEEK_SET) == 0) {
        while ((n = fread(samples, sizeof *samples, PIECE, file)) > 0) {
            if (srf_stream_accept_i16(stream, samples, n, 16000) != SRF_OK) {
                break;
            }
            char *partial = srf_stream_partial(stream);
            fprintf(stderr, "\r%s", partial);
            srf_text_free(partial);
        }
        fprintf(stderr, "\n");
        ended = srf_stream_finish(stream);
    }
    if (file) {
        fclose(file);
    }
    srf_stream_free(stream);
    return ended;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL FILE.wav\n", argv[0]);
        return 2;
    }
    // One utterance, however long its pauses are.
    SrfRecognizer *recognizer = srf_recognizer_open(argv[1], "{\"endpoint\": false}");
    if (!recognizer) {
        return failed(argv[1]);
    }
    char *text = srf_transcribe_file(recognizer, argv[2], "text");
    if (!text) {
        return failed(argv[2]);
    }
    text[strcspn(text, "\n")] = 0;
    printf("%s\n", text);

    char *ended = stream_file(recognizer, argv[2]);
    if (!ended) {
        return failed("stream");
    }
    int is_same = has_text(ended, text);
    fprintf(stderr, "file and stream %s\n", is_same ? "agree" : "differ");
    srf_text_free(ended);
    srf_text_free(text);
    srf_recognizer_free(recognizer);
    return is_same ? EXIT_SUCCESS : EXIT_FAILURE;
}
