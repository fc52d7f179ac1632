// srf: speech recognition with capsule networks. Written by cbindgen from bindings/c/src/lib.rs: `cargo xtask c`.
//
// All functions may be called from any thread; a recogniser may be shared by threads, a stream belongs to one at a time.
// Texts are UTF-8. A function that fails returns NULL or SRF_ERROR, and srf_error() says why.
// Texts that functions return are freed with srf_text_free(), unless they are `const`.
//
// cc program.c -lsrf_c

#ifndef SRF_H
#define SRF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// How a call ended.
typedef enum {
  // It did what it is for.
  SRF_OK = 0,
  // It did not; srf_error() says why.
  SRF_ERROR = 1,
} SrfStatus;

// A model that is ready to recognise.
typedef struct SrfRecognizer SrfRecognizer;

// The state of one speaker's live stream.
typedef struct SrfStream SrfStream;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library.
const char *srf_version(void);

// What went wrong in the last call of this thread that failed, in one line; valid until its next call that fails.
const char *srf_error(void);

// What to do about it; empty if nothing is known. Valid as srf_error() is.
const char *srf_hint(void);

// Opens a model directory, or the default model if `model` is NULL.
//
// `options` is NULL or JSON such as {"n_best": 3, "hotwords": {"text": "forty two\n"}, "endpoint": false}; its keys
// are those of srf::options. Free the recogniser with srf_recognizer_free().
//
// # Safety
// `model` and `options` are NULL or texts that end with a zero byte.
SrfRecognizer *srf_recognizer_open(const char *model,
                                   const char *options);

// Frees a recogniser; its streams may go on. NULL is allowed.
//
// # Safety
// `recognizer` is NULL or from srf_recognizer_open(), and is not used afterwards.
void srf_recognizer_free(SrfRecognizer *recognizer);

// The rate that recordings are resampled to, in Hz; 0 if `recognizer` is NULL.
//
// # Safety
// `recognizer` is NULL or from srf_recognizer_open().
uint32_t srf_recognizer_rate_hz(const SrfRecognizer *recognizer);

// Transcribes a recording of any format and rate.
//
// `format` is text, json, ctm, trn, srt, vtt, textgrid or csv.
//
// # Safety
// `recognizer` is from srf_recognizer_open(); `path` and `format` are texts that end with a zero byte.
char *srf_transcribe_file(const SrfRecognizer *recognizer,
                          const char *path,
                          const char *format);

// Transcribes `n_samples` mono samples from -1 to 1 at `rate_hz`; `format` as in srf_transcribe_file().
//
// # Safety
// `recognizer` is from srf_recognizer_open(); `samples` are `n_samples` floats; `format` is a text that ends with a
// zero byte.
char *srf_transcribe_samples(const SrfRecognizer *recognizer,
                             const float *samples,
                             size_t n_samples,
                             uint32_t rate_hz,
                             const char *format);

// Starts a live stream of one speaker. Free it with srf_stream_free().
//
// # Safety
// `recognizer` is from srf_recognizer_open().
SrfStream *srf_stream_open(const SrfRecognizer *recognizer);

// Frees a stream. NULL is allowed.
//
// # Safety
// `stream` is NULL or from srf_stream_open(), and is not used afterwards.
void srf_stream_free(SrfStream *stream);

// Accepts `n_samples` mono samples from -1 to 1; the rate of a stream stays the same until it is reset.
//
// # Safety
// `stream` is from srf_stream_open(); `samples` are `n_samples` floats.
SrfStatus srf_stream_accept(SrfStream *stream,
                            const float *samples,
                            size_t n_samples,
                            uint32_t rate_hz);

// Accepts `n_samples` mono samples of 16 bits.
//
// # Safety
// `stream` is from srf_stream_open(); `samples` are `n_samples` integers.
SrfStatus srf_stream_accept_i16(SrfStream *stream,
                                const int16_t *samples,
                                size_t n_samples,
                                uint32_t rate_hz);

// The text of the current utterance so far; empty if nothing was recognised yet.
//
// # Safety
// `stream` is from srf_stream_open().
char *srf_stream_partial(const SrfStream *stream);

// Takes the segments that have ended, as a JSON array; each has text, times, words, tokens and confidences.
//
// # Safety
// `stream` is from srf_stream_open().
char *srf_stream_take_ended(SrfStream *stream);

// Ends the utterance now, without waiting for later samples. The stream goes on, and so do its times.
//
// # Safety
// `stream` is from srf_stream_open().
SrfStatus srf_stream_flush(SrfStream *stream);

// Ends the stream and returns the segments that were not taken yet. The stream is at its start again.
//
// # Safety
// `stream` is from srf_stream_open().
char *srf_stream_finish(SrfStream *stream);

// Forgets everything.
//
// # Safety
// `stream` is from srf_stream_open().
SrfStatus srf_stream_reset(SrfStream *stream);

// Frees a text that a function of this library returned. NULL is allowed.
//
// # Safety
// `text` is NULL or from this library, and is not used afterwards.
void srf_text_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SRF_H */
