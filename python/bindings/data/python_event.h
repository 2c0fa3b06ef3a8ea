// Events and their fragments as Python objects: fields as numbers, bytes as NumPy views that keep what they look at.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "event_parts.h"

namespace rodeo::python::data {

/// A whole event, decoded. Immutable; any thread.
struct PyEvent {
  std::shared_ptr<const EventParts> parts;
};

void bind_events(nanobind::module_& module);

}  // namespace rodeo::python::data
