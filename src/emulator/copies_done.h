// After stores past the caches: a card's data go to memory that this process never reads.
#pragma once

#include <emmintrin.h>

namespace rodeo::emulator {

/// Orders stores past the caches, and plain ones, before what is stored next. Call it before anybody is told of data.
inline void copies_done() { _mm_sfence(); }

}  // namespace rodeo::emulator
