// ThreadSanitizer sees Swift's Mutex only while nobody contends for it: the fast path is compiled into the program, the slow one is in
// libswiftSynchronization, which is not instrumented. Without this a value that a contended Mutex guards is reported as a race. Loaded
// before the libraries (LD_PRELOAD), it tells of the slow paths what the instrumented ones would.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

// Weak: programs that the tests start are loaded with this too, and have no sanitizer.
extern __attribute__((weak)) void __tsan_acquire(void *address);
extern __attribute__((weak)) void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

// _MutexHandle._lockSlow(_: UInt32), ._tryLockSlow() -> Bool and ._unlockSlow() of Swift 6.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lockSlow(uint32_t thread, SELF) asm(LOCK);
SWIFT bool tryLockSlow(SELF) asm(TRY);
SWIFT void unlockSlow(SELF) asm(UNLOCK);

SWIFT void lockSlow(uint32_t thread, SELF) {
    ((SWIFT void (*)(uint32_t, SELF))dlsym(RTLD_NEXT, LOCK))(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT bool tryLockSlow(SELF) {
    bool isTaken = ((SWIFT bool (*)(SELF))dlsym(RTLD_NEXT, TRY))(self);
    if (isTaken && __tsan_acquire) __tsan_acquire(self);
    return isTaken;
}

SWIFT void unlockSlow(SELF) {
    if (__tsan_release) __tsan_release(self);
    ((SWIFT void (*)(SELF))dlsym(RTLD_NEXT, UNLOCK))(self);
}
