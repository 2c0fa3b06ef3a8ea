// A program that is spoken to in lines on its stdin and stdout: an agent or a switch driver. It dies with us.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "network/laboratory/file_descriptor.h"

namespace rodeo::network::laboratory {

/// Asked while waiting; true ends the wait with network.interrupted.
using Stop = std::function<bool()>;

class LineProcess {
 public:
  /// Starts `command` (found in PATH), in the network namespace of a descriptor if that is not negative. `name` and `code` are where and what
  /// of its errors. Call on the main thread: the program dies with the thread that started it.
  static Result<LineProcess> start(std::string name, std::string code, const std::vector<std::string>& command,
                                   int network_namespace = -1);

  LineProcess(LineProcess&&) = default;
  LineProcess& operator=(LineProcess&&) = delete;
  ~LineProcess();  ///< ends its stdin, and the program if that does not end it

  const std::string& name() const { return name_; }

  /// `line` without the end of line. Error: it has ended.
  Result<void> send(const std::string& line);
  /// The next line. Errors: it ended or said a line of more than 64 KiB; network.agent_silent, network.interrupted.
  Result<std::string> receive(std::chrono::milliseconds patience, const Stop& stop);

 private:
  LineProcess(std::string name, std::string code, pid_t pid, FileDescriptor to, FileDescriptor from)
      : name_(std::move(name)), code_(std::move(code)), pid_(pid), to_(std::move(to)), from_(std::move(from)) {}

  struct Pid {  // moves like a unique_ptr
    pid_t value = -1;
    explicit Pid(pid_t given) : value(given) {}
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, -1)) {}
  };

  std::string name_;
  std::string code_;
  Pid pid_;
  FileDescriptor to_;
  FileDescriptor from_;
  std::string text_;
};

}  // namespace rodeo::network::laboratory
