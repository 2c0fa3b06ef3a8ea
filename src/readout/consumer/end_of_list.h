// The consumer behind the last one: it releases fragments. So every consumer has a next one and need not test for it.
#pragma once

#include "rodeo/consumer.h"

namespace rodeo::readout {

/// There is one for the whole process.
FragmentConsumer* end_of_list();

}  // namespace rodeo::readout
