/* The C library's open streams, which are all contexts'.  ELF systems. */
#ifndef LOADER_TRACK_STREAMS_H
#define LOADER_TRACK_STREAMS_H

/* Writes what they have buffered, as exit(3) does: where another thread uses a stream, and may be
 * waiting for input, that stream is left alone.  With a C library that has no list of streams it
 * waits for such threads. */
void exti__streams_flush(void);

#endif
