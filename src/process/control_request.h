// Requests and answers on a control socket, as lines of JSON (docs/protocols/control.md): what all processes that have one share.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "settings/json.h"

namespace rodeo::process {

using settings::Json;

/// {"ok": false, ...}
std::string refusal(const Error& error);
/// {"ok": true, "reply": value}
std::string reply(Json value);

/// What a process answers to one line, which may hold any bytes: `answer`'s, or a refusal if the line is no JSON
/// (config.bad_json) or if something throws (its own error, else process.failed). Never throws but for want of memory for
/// the refusal itself.
std::string answer_line(const std::string& line, const std::function<std::string(const Json& request)>& answer);

/// A member as text; empty if there is none.
std::string text_of(const Json& object, std::string_view key);

/// A kind of process with a control socket.
struct ControlledProcess {
  std::string_view noun;        ///< "readout"
  std::string_view extension;   ///< of the socket's file name: ".control"
  std::string_view which_code;  ///< error if several may be meant
  std::string_view start;       ///< how one is started
};

/// Sends a request to the process of this name - empty: the only one of its kind that runs. Errors: process.unreachable,
/// which_code, and what it refuses with the code it gives. Waits five seconds at most.
Result<Json> ask_process(const ControlledProcess& kind, const std::string& name, const Json& request);

}  // namespace rodeo::process
