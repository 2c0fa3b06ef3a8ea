// For set-up code: the value of a Result, or an exception.
#pragma once

#include <utility>

#include "base/error.h"

namespace rodeo {

/// Returns the value. Throws SetupError if `result` is an error.
template <typename T>
T need(Result<T> result) {
  if (!result) throw SetupError(std::move(result.error()));
  return *std::move(result);
}

}  // namespace rodeo
