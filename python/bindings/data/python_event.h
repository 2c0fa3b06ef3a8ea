// Events and their fragments as Python objects: fields are numbers, bytes are NumPy views that keep their memory alive.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "event_parts.h"

namespace rodeo::python::data {

/// A decoded event. Immutable; any thread.
struct PyEvent {
  std::shared_ptr<const EventParts> parts;
};

void bind_events(nanobind::module_& module);

}  // namespace rodeo::python::data
