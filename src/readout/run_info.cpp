#include "readout/run_info.h"

#include <utility>

namespace rodeo::readout {
namespace {

RunInfo& current() {
  static RunInfo info;
  return info;
}

}  // namespace

void set_run_info(RunInfo info) { current() = std::move(info); }

const RunInfo& run_info() { return current(); }

}  // namespace rodeo::readout
