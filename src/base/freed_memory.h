// Freed memory: how much of it the allocator keeps for itself. A request of some megabytes is rare, and what it needed
// must not stay with the thread that answered it: there are many of them.
//
// glibc's allocator gives memory to each thread from one of several arenas. malloc_trim gives back what is free inside
// all of them, but of the free end of an arena only the main one's: the others' stays until it reaches a threshold. The
// allocator raises that threshold by itself, up to 64 MiB for each arena, when large blocks are freed.
#pragma once

namespace outrider {

// Keeps the allocator from raising its thresholds: blocks of a MiB and more come from the system and go back to it when
// they are freed, and the free end of an arena stays below two MiB. To be called before there are other threads.
void LimitFreedMemory();

// Gives what is free inside the arenas back to the system. Takes milliseconds, and the lock of each arena in turn.
void GiveFreedMemoryBack();

}  // namespace outrider
