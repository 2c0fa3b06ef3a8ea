#include "readout/library.h"

#include <vector>

#include "readout/defaults.h"

namespace rodeo::readout {
namespace {

std::vector<void (*)(Registry&)>& more_libraries() {
  static std::vector<void (*)(Registry&)> libraries;
  return libraries;
}

}  // namespace

void add_default_library(void (*registration)(Registry&)) { more_libraries().push_back(registration); }

Library::Library() {
  const auto add = [&](auto registration) {
    if (const auto added = registry_.add_library("built in", registration); !added) throw SetupError(added.error());
  };
  add(register_defaults);
  for (const auto registration : more_libraries()) add(registration);
}

}  // namespace rodeo::readout
