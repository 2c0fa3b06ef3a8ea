// Shared by the files of the module rodeo._network.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace rodeo::python {

/// A NumPy array that takes over the vector's memory without a copy.
template <typename T>
nanobind::object array_of(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  nanobind::capsule owner(held, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(held->data(), {held->size()}, owner));
}

void add_simulator(nanobind::module_& module);

}  // namespace rodeo::python
