#include "base/pin.h"

#include "base/log.h"
#include "base/thread.h"

namespace rodeo::base {

void pin_thread_or_warn(int cpu, const std::string& thread) {
  if (!pin_thread(cpu)) log_warning("{} cannot be pinned to CPU {}: it runs wherever there is room", thread, cpu);
}

}  // namespace rodeo::base
