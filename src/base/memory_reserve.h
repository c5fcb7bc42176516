// A block of memory that is kept for the moment in which there is no more. Whoever asks for memory in vain gets
// std::bad_alloc; at the same time the block is freed, so that what the exception passes on its way can be destroyed.
// That needs memory: the destructor of a large Json makes a list of its parts, and ends the program if it cannot.
#pragma once

namespace outrider {

// From now on the reserve is kept; fills it again if it was used. Cheap if it is full. Any thread.
void KeepMemoryReserve();

}  // namespace outrider
