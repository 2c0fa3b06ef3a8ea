// For inputs of the default library that can fail in the middle of a run.
#pragma once

#include <string>

namespace rodeo::readout {

/// An input that also implements this ends the run when it fails: the streams end, and the application says why.
class InputFailure {
 public:
  /// A complete sentence; empty while all is well. Any thread.
  virtual std::string failure() const = 0;

 protected:
  ~InputFailure() = default;
};

}  // namespace rodeo::readout
