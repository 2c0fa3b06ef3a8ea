// Shared by all bindings: Rodeo's errors as Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/error.h"

namespace rodeo::python {

namespace nb = nanobind;

/// The value, or ValueError with the error's message.
template <typename T>
T unwrap(Result<T> result) {
  if (!result) throw nb::value_error(result.error().message().c_str());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace rodeo::python
