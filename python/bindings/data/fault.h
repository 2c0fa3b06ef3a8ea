// The fault of a data file or of one of its events, passed to Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "base/error.h"
#include "formats/decode_error.h"

namespace rodeo::python::data {

/// The fault of a file, or of one event.
struct Fault {
  Error error;
  std::string path = {};
  std::optional<std::uint64_t> event = {};  ///< number of the event in the file, from 0; nullopt: the file itself
  std::uint64_t offset = 0;                 ///< byte offset in the file
  std::optional<std::uint32_t> l1id = {};   ///< present if the header of the event has it
};

/// Thrown to report a fault to Python.
class FaultError : public std::exception {
 public:
  explicit FaultError(Fault given) : fault(std::move(given)) {}
  const char* what() const noexcept override { return fault.error.what.c_str(); }
  Fault fault;
};

}  // namespace rodeo::python::data
