// A program with a dialogue over stdin and stdout, one JSON object a line: an agent or a switch driver. It ends with this
// process.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "base/fd_socket.h"
#include "settings/json.h"

namespace rodeo::network::laboratory {

using settings::Json;

/// Called while waiting; true ends the wait with network.interrupted.
using Stop = std::function<bool()>;

/// A member of a message; null if it is missing.
const Json& member_of(const Json& said, std::string_view name);

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

class LineProcess {
 public:
  /// Starts `command` (found in PATH) in the network namespace of a descriptor; a negative descriptor: in that of this
  /// process. Errors have `name` as their place and the code `code`. Call it on the main thread: the program ends with the
  /// thread that started it.
  static Result<LineProcess> start(std::string name, std::string code, const std::vector<std::string>& command,
                                   int network_namespace = -1);

  LineProcess(LineProcess&&) = default;
  LineProcess& operator=(LineProcess&&) = delete;
  ~LineProcess();  ///< closes the program's stdin; kills the program if it does not end

  const std::string& name() const { return name_; }

  /// Sends a message. Error: the program has ended.
  Result<void> send(const Json& object);
  /// The next message. Errors: the program ended, its line is not a JSON object or has more than 64 KiB;
  /// network.agent_silent, network.interrupted; the program's own error: {"error": TEXT}, perhaps with "code" and "next".
  Result<Json> receive(std::chrono::milliseconds patience, const Stop& stop);
  /// send(), then receive().
  Result<Json> ask(const Json& question, std::chrono::milliseconds patience, const Stop& stop);

 private:
  LineProcess(std::string name, std::string code) : name_(std::move(name)), code_(std::move(code)) {}
  Result<std::string> next_line(std::chrono::milliseconds patience, const Stop& stop);
  std::unexpected<Error> failed(std::string what) const;

  std::string name_;
  std::string code_;
  base::ChildProcess process_;
  base::UniqueFd to_;
  base::UniqueFd from_;
  std::string text_;
};

}  // namespace rodeo::network::laboratory
