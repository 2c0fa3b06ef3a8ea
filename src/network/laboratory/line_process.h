// A program that is spoken to in lines on its stdin and stdout: an agent or a switch driver. It dies with us.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/fd_socket.h"

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
  LineProcess(std::string name, std::string code) : name_(std::move(name)), code_(std::move(code)) {}

  std::string name_;
  std::string code_;
  base::ChildProcess process_;
  base::UniqueFd to_;
  base::UniqueFd from_;
  std::string text_;
};

}  // namespace rodeo::network::laboratory
