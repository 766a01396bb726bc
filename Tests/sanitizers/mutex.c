// ThreadSanitizer observes Swift's Mutex only without contention: the fast path is compiled into the program, the slow one is in
// libswiftSynchronization, which is not instrumented. A value guarded by a contended Mutex would be reported as a race. This library is
// loaded first (LD_PRELOAD) and reports the slow paths to the sanitizer, as instrumented code would.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

// Weak: programs that the tests start load this library too, and have no sanitizer.
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
