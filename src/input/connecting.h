// Of an input that reads what others send: whether it has reached them.
#pragma once

namespace rodeo::input {

/// Beside DataInput, for inputs to which it means something.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Everybody that it reads from has been reached since start(): what is sent from then on comes here. Stays true. Any thread.
  virtual bool connected() const = 0;
};

}  // namespace rodeo::input
