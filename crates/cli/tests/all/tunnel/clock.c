/* Preloaded into a program, it adds the seconds in the file $CLOCK_AHEAD to the time of day. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    int done = syscall(SYS_clock_gettime, id, at);
    const char *name = getenv("CLOCK_AHEAD");
    FILE *file = id == CLOCK_REALTIME && name ? fopen(name, "r") : NULL;
    long ahead = 0;
    if (file) {
        if (fscanf(file, "%ld", &ahead) == 1) at->tv_sec += ahead;
        fclose(file);
    }
    return done;
}
